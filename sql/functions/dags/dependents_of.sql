-- dependents_of: the tasks that still wait for one of these.
--
-- Concurrency: reads; what is added meanwhile is seen by the next look.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.dependents_of(p_ids uuid[])
returns uuid[]
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select
    array(
      select dependencies.task_id
      from treadle.dependencies
      where dependencies.depends_on = any (p_ids) and dependencies.met_at is null
    )
$$;

comment on function treadle.dependents_of(uuid[]) is
'Internal: who waits for these tasks, one step down.';

revoke all on function treadle.dependents_of(uuid[]) from public;
