-- probe_for: the task that an agent would be given next to try a breaker, see pick_probe.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.probe_for(p_agent treadle.agents, p_now timestamptz)
returns uuid
language plpgsql
stable
set search_path = ''
as $$
declare
  v_type   text;
  v_lanes  integer[];
  v_shifts bigint[];
  v_found  uuid;
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
    select
      array_agg(lanes.id),
      array_agg(treadle.shift_at(lanes.ageing, treadle.rank_ms(p_now)))
    into v_lanes, v_shifts
    from treadle.lanes
    inner join treadle.queues on lanes.queue = queues.name
    inner join treadle.task_types on lanes.type = task_types.name
    where
      lanes.type = v_type
      and lanes.queue = any (p_agent.queues)
      and lanes.queue <> 'work'
      and queues.paused_at is null
      and task_types.paused_at is null
      and lanes.capabilities <@ p_agent.capabilities
      and (lanes.agent_id is null or lanes.agent_id = p_agent.id)
      and (lanes.agent_id is not null or lanes.queue <> 'harness' or p_agent.type <> 'harness')
      and not exists (
        select from treadle.gates
        where gates.key = any (lanes.gates) and gates.closed_until > p_now
      );
    v_found := treadle.head_of(
      v_lanes, v_shifts, treadle.agent_can_spend(p_agent.id, p_now), '{}'
    );
    exit when v_found is not null;
  end loop;
  return v_found;
end;
$$;

comment on function treadle.probe_for(treadle.agents, timestamptz) is
'Internal: the task that the next claim of an agent takes as a probe, if any.';

revoke all on function treadle.probe_for(treadle.agents, timestamptz) from public;
