-- push_rank: the rank of a task that comes to the end of its lane at a moment.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.push_rank(p_task treadle.tasks, p_at timestamptz)
returns bigint
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    (p_task.priority - p_task.critical_path) * 1000000::bigint
    + treadle.rank_shift(lanes.ageing - lanes.urgency, p_at)
  from treadle.lanes
  where lanes.id = p_task.lane_id
$$;

comment on function treadle.push_rank(treadle.tasks, timestamptz) is
'Internal: the rank with which a task is behind all that came before this moment.';

revoke all on function treadle.push_rank(treadle.tasks, timestamptz) from public;
