-- push_depth: how many entries of queue `push` wait.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.push_depth()
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select count(*)::integer
  from treadle.tasks
  where
    tasks.queue = 'push'
    and tasks.completed_at is null
    and tasks.status not in ('claimed', 'running', 'validating')
$$;

comment on function treadle.push_depth() is 'Internal: the depth of queue push.';

revoke all on function treadle.push_depth() from public;
