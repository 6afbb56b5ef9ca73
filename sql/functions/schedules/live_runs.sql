-- live_runs: tasks and DAGs that a schedule made and that have not ended.
--
-- The last hundred that it made count; a DAG that waits for a person to decide has stopped.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.live_runs(p_schedule uuid)
returns table (task_id uuid, dag_id uuid)
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select made.task_id, made.dag_id
  from (
    select schedule_runs.task_id, schedule_runs.dag_id
    from treadle.schedule_runs
    where schedule_runs.schedule_id = p_schedule and schedule_runs.status = 'queued'
    order by schedule_runs.id desc
    limit 100
  ) as made
  where
    exists (
      select from treadle.tasks
      where
        tasks.id = made.task_id
        and tasks.status not in ('completed', 'dead_lettered', 'cancelled')
    )
    or exists (
      select from treadle.dags
      where dags.id = made.dag_id and dags.status in ('open', 'running')
    )
$$;

comment on function treadle.live_runs(uuid) is
'Internal: what of the work of a schedule is still under way.';

revoke all on function treadle.live_runs(uuid) from public;
