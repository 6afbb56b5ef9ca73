-- is_free: whether a waiting task can go once so many of its edges are met.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.is_free(
  p_task   treadle.tasks,
  p_edges  integer,
  p_now    timestamptz
)
returns boolean
language sql
immutable
parallel safe
return (
  p_task.status = 'pending'
  and p_task.blocked_count = p_edges
  -- One that is parked goes on when its budget has room.
  and p_task.budget_id is null
  and coalesce(p_task.run_at <= p_now, true)
);

comment on function treadle.is_free(treadle.tasks, integer, timestamptz) is
'Internal: the edges were all it waited for, and its time has come.';

revoke all on function treadle.is_free(treadle.tasks, integer, timestamptz) from public;
