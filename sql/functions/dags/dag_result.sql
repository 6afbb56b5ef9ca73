-- dag_result: how a DAG whose tasks have all ended has ended itself.
--
-- Completed when a task was completed that none of the DAG depends on: something came out at the
-- end. Subtasks do not count, they are part of the task that spawned them.
--
-- Concurrency: reads; the caller holds the DAG, and nothing in it moves any more.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.dag_result(p_dag uuid)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    case
      when exists (
        select from treadle.tasks
        where
          tasks.dag_id = p_dag
          and tasks.status = 'completed'
          and tasks.parent_id is null
          and not exists (
            select from treadle.dependencies
            inner join treadle.tasks as dependent on dependencies.task_id = dependent.id
            where
              dependencies.depends_on = tasks.id
              -- Not as a condition that an index could serve: that would read the whole DAG.
              and (dependent.dag_id = p_dag) is true
              and dependent.parent_id is null
          )
      )
        then 'completed'
      else 'cancelled'
    end
$$;

comment on function treadle.dag_result(uuid) is 'Internal: completed or cancelled.';

revoke all on function treadle.dag_result(uuid) from public;
