-- revivable_of: those of some tasks that would not wait for one that is cancelled.
--
-- Concurrency: the caller holds the tasks and what they wait for.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.revivable_of(p_ids uuid[])
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    array(
      select given.id
      from unnest(p_ids) as given (id)
      where not exists (
        select
        from treadle.dependencies
        inner join treadle.tasks on dependencies.depends_on = tasks.id
        where
          dependencies.task_id = given.id and dependencies.met_at is null
          and tasks.status = 'cancelled'
      )
    )
$$;

comment on function treadle.revivable_of(uuid[]) is
'Internal: tasks that can run again as things stand.';

revoke all on function treadle.revivable_of(uuid[]) from public;
