-- dag_result: how a DAG whose tasks have all ended has ended itself.
--
-- Completed when a task that nobody depends on was completed: something came out at the end.
--
-- Concurrency: reads; the caller holds the DAG, and nothing in it moves any more.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.dag_result(p_dag uuid)
returns text
language sql
stable
set search_path = ''
set jit = off
set enable_seqscan = off
as $$
  select
    case
      when exists (
        select from treadle.tasks
        where
          tasks.dag_id = p_dag
          and tasks.status = 'completed'
          and not exists (
            select from treadle.dependencies where dependencies.depends_on = tasks.id
          )
      )
        then 'completed'
      else 'cancelled'
    end
$$;

comment on function treadle.dag_result(uuid) is 'Internal: completed or cancelled.';

revoke all on function treadle.dag_result(uuid) from public;
