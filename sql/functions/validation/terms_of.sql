-- terms_of: what is asked of the attempt that a task is in: models, validators, a report.
--
-- Its own, else those of its type, as they are now: what is changed in the code goes for tasks
-- that wait already.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.terms_of(
  p_task treadle.tasks,
  out models      text[],
  out validation  jsonb,
  out report      boolean
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    treadle.attempt_models(
      p_task.attempt, p_task.models, p_task.fallback_models,
      task_types.models, task_types.fallback_models
    ),
    coalesce(p_task.validation, task_types.validation),
    coalesce(p_task.report, task_types.report) = 'required'
  from treadle.task_types
  where task_types.name = p_task.type
$$;

comment on function treadle.terms_of(treadle.tasks) is
'Internal: models, validators and the need for a report that are in force for a task now.';

revoke all on function treadle.terms_of(treadle.tasks) from public;
