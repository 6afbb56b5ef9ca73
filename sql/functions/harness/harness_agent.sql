-- harness_agent: an agent of the harness lives; made known where it is new.
--
-- A claim lasts three heartbeats of its agent, so the timeout is kept there. Null leaves it alone.
--
-- Concurrency: one row, written when it says something new or is old.
-- Lock order:  agents.
-- Raises:      TR001 invalid argument.

create or replace function treadle.harness_agent(p_url text, p_timeout_s double precision)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := treadle.clock();
  v_beat  double precision := p_timeout_s / 3;
  v_agent treadle.agents;
begin
  if p_timeout_s not between 1 and 86400 then
    perform treadle.refuse(
      'the claim timeout must be 1 to 86400 seconds', jsonb_build_object('argument', 'timeout_s')
    );
  end if;
  select agents.* into v_agent from treadle.agents where agents.id = p_url;
  if not found then
    insert into treadle.agents (id, type, queues, heartbeat_s, heartbeat_at, registered_at)
    values (p_url, 'harness', '{harness}', coalesce(v_beat, 100), v_now, v_now)
    on conflict (id) do nothing;
  elsif v_agent.heartbeat_s <> v_beat or v_agent.silent or v_agent.type <> 'harness'
    or v_agent.heartbeat_at < v_now - make_interval(secs => v_agent.heartbeat_s / 3) then
    update treadle.agents
    set
      type = 'harness',
      heartbeat_s = coalesce(v_beat, agents.heartbeat_s),
      heartbeat_at = v_now,
      status = case when agents.silent then 'active' else agents.status end,
      silent = false
    where agents.id = p_url;
  end if;
end;
$$;

comment on function treadle.harness_agent(text, double precision) is
'Internal: records that an agent of the harness lives.';

revoke all on function treadle.harness_agent(text, double precision) from public;
