-- dependencies_of: the tasks that one of these still waits for.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.dependencies_of(p_ids uuid[])
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
      select dependencies.depends_on
      from treadle.dependencies
      where dependencies.task_id = any (p_ids) and dependencies.met_at is null
    )
$$;

comment on function treadle.dependencies_of(uuid[]) is
'Internal: what these tasks wait for, one step up.';

revoke all on function treadle.dependencies_of(uuid[]) from public;
