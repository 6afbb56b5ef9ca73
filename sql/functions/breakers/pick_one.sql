-- pick_one: lock the best task of one type that an agent may have, whatever its breaker says.
--
-- Concurrency: rows locked by others are skipped, never waited for.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.pick_one(
  p_agent   treadle.agents,
  p_queues  text[],
  p_type    text,
  p_now     timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_lanes  integer[];
  v_shifts bigint[];
begin
  select
    array_agg(lanes.id),
    array_agg(treadle.shift_at(lanes.ageing, treadle.rank_ms(p_now)))
  into v_lanes, v_shifts
  from treadle.lanes
  inner join treadle.queues on lanes.queue = queues.name
  inner join treadle.task_types on lanes.type = task_types.name
  where
    lanes.type = p_type
    and lanes.queue = any (p_queues)
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
  if v_lanes is null then
    return '{}';
  end if;
  return treadle.pick_tasks(
    v_lanes, v_shifts, 1,
    case
      when exists (select from treadle.budgets) then treadle.agent_can_spend(p_agent.id, p_now)
    end
  );
end;
$$;

comment on function treadle.pick_one(treadle.agents, text[], text, timestamptz) is
'Internal: locks the task that would be claimed first if its breaker were closed.';

revoke all on function treadle.pick_one(treadle.agents, text[], text, timestamptz) from public;
