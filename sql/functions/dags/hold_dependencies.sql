-- hold_dependencies: lock tasks that others are about to depend on.
--
-- They are written too, without a change: who ends one of them with an older snapshot then fails
-- and is repeated, instead of missing its new dependent.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, by id.
-- Raises:      nothing.

create or replace function treadle.hold_dependencies(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  perform treadle.lock_tasks(p_ids);
  update treadle.tasks
  set blocked_count = tasks.blocked_count
  where tasks.id = any (p_ids) and tasks.status not in ('completed', 'cancelled');
end;
$$;

comment on function treadle.hold_dependencies(uuid[]) is
'Internal: locks the tasks at the other end of new edges.';

revoke all on function treadle.hold_dependencies(uuid[]) from public;
