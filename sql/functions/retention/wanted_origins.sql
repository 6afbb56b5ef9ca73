-- wanted_origins: tasks whose files the steps of a fork may name that may still run.
--
-- A fork has the steps of what it comes from, also of what that one comes from: so a fork in
-- between stays too, or nobody would know.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.wanted_origins(p_ids uuid[])
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with recursive heirs as (
    select tasks.forked_from as origin, tasks.id
    from treadle.tasks
    where tasks.forked_from = any (p_ids)
    union
    select heirs.origin, tasks.id
    from heirs
    inner join treadle.tasks on heirs.id = tasks.forked_from
  )

  select array(
    select origins.id
    from heirs
    inner join treadle.tasks as origins on heirs.origin = origins.id
    inner join treadle.tasks as forks on heirs.id = forks.id
    where
      forks.status not in ('completed', 'cancelled')
      and (
        origins.forked_from is not null
        or exists (
          select from treadle.artifacts
          where artifacts.task_id = origins.id and artifacts.status = 'stored'
        )
      )
  )
$$;

comment on function treadle.wanted_origins(uuid[]) is
'Internal: tasks whose forks may still need their files.';

revoke all on function treadle.wanted_origins(uuid[]) from public;
