-- probe_for: the task that an agent would be given next to try a breaker, see pick_probe.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.probe_for(p_agent treadle.agents, p_now timestamptz)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type  text;
  v_from  record;
  v_found uuid;
begin
  for v_type in
    select breakers.type
    from treadle.breakers
    where
      breakers.probe_at <= p_now
      and (p_agent.task_types is null or breakers.type = any (p_agent.task_types))
      and not exists (
        select from treadle.tasks
        where tasks.id = breakers.probe_task and tasks.claim_token = breakers.probe_token
      )
    order by breakers.type
  loop
    v_from := treadle.probe_lanes(p_agent, p_agent.queues, v_type, p_now);
    v_found := treadle.head_of(
      v_from.lanes, v_from.shifts, treadle.agent_can_spend(p_agent.id, p_now), '{}'
    );
    exit when v_found is not null;
  end loop;
  return v_found;
end;
$$;

comment on function treadle.probe_for(treadle.agents, timestamptz) is
'Internal: the task that the next claim of an agent takes as a probe, if any.';

revoke all on function treadle.probe_for(treadle.agents, timestamptz) from public;
