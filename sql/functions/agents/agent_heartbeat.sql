-- agent_heartbeat: an agent lives; it learns whether it should go on claiming.
--
-- An agent that the reaper took for dead is active again. One that a person is draining stays so.
--
-- Concurrency: one row.
-- Lock order:  agents.
-- Raises:      TR204 unknown agent.

create or replace function treadle.agent_heartbeat(p_id text)
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

comment on function treadle.agent_heartbeat(text) is
'Record that an agent lives; returns its status: active, draining or offline.';

grant execute on function treadle.agent_heartbeat(text) to treadle_worker;
