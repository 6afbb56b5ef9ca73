-- close_waits: nobody waits any more for the answers of tasks that have ended.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  waits, after tasks.
-- Raises:      nothing.

create or replace function treadle.close_waits(p_tasks uuid[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  update treadle.waits
  set status = 'cancelled', ended_at = treadle.clock()
  where waits.task_id = any (p_tasks) and waits.status = 'open'
$$;

comment on function treadle.close_waits(uuid[]) is
'Internal: cancels the open waits of tasks that have ended.';

revoke all on function treadle.close_waits(uuid[]) from public;
