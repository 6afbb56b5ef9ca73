-- probe_lanes: the lanes of one type from which an agent could be given a probe of its breaker.
--
-- As open_lanes, but for the breaker itself.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing; both are null when there is none.

create or replace function treadle.probe_lanes(
  p_agent   treadle.agents,
  p_queues  text[],
  p_type    text,
  p_now     timestamptz,
  out lanes   integer[],
  out shifts  bigint[]
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    array_agg(lane.id),
    array_agg(treadle.shift_at(lane.ageing, treadle.rank_ms(p_now)))
  from treadle.lanes as lane
  inner join treadle.queues on lane.queue = queues.name
  inner join treadle.task_types on lane.type = task_types.name
  where
    lane.type = p_type
    and lane.queue = any (p_queues)
    and lane.queue <> 'work'
    and queues.paused_at is null
    and task_types.paused_at is null
    and treadle.suits(lane, p_agent)
    and not exists (
      select from treadle.gates
      where gates.key = any (lane.gates) and gates.closed_until > p_now
    )
$$;

comment on function treadle.probe_lanes(treadle.agents, text[], text, timestamptz) is
'Internal: where a probe of a breaker may come from, for one agent.';

revoke all on function treadle.probe_lanes(treadle.agents, text[], text, timestamptz) from public;
