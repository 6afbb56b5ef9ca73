-- heartbeat_agent: record a heartbeat of an agent and return its status.
--
-- An agent that mark_agents_offline set offline becomes active again. An agent that an operator is
-- draining stays draining.
--
-- Lock order:  agents.
-- Raises:      TR204 unknown agent.

create or replace function treadle.heartbeat_agent(p_id text)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status text;
begin
  update treadle.agents
  set
    heartbeat_at = treadle.clock(),
    status = case when agents.silent then 'active' else agents.status end,
    silent = false
  where agents.id = p_id
  returning agents.status into v_status;
  if not found then
    perform treadle.claiming_agent(p_id, 1);
  end if;
  return v_status;
end;
$$;

comment on function treadle.heartbeat_agent(text) is
'Record a heartbeat of an agent; returns its status: active, draining or offline.';

grant execute on function treadle.heartbeat_agent(text) to treadle_worker;
