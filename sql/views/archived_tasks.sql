-- archived_tasks: finished tasks that were pruned, with what people ask of a task.

create view treadle.archived_tasks as
select
  task_history.id,
  task_history.queue,
  task_history.type,
  task_history.task ->> 'title' as title,
  task_history.status,
  task_history.dag_id,
  task_history.parent_id,
  task_history.created_at,
  task_history.completed_at,
  task_history.archived_at,
  (task_history.task ->> 'attempt')::smallint as attempt,
  task_history.task ->> 'completed_by' as completed_by,
  task_history.task ->> 'failure_class' as failure_class,
  task_history.task ->> 'failure_reason' as failure_reason,
  task_history.cost_usd,
  task_history.depends_on,
  task_history.task::jsonb || coalesce(task_history.documents, '{}') || jsonb_build_object(
    'spec', task_history.spec, 'output', task_history.output
  ) as task,
  task_history.attempts,
  task_history.steps,
  task_history.waits,
  task_history.dead_letters,
  task_history.spend,
  task_history.artifacts,
  task_history.events
from treadle.task_history;

comment on column treadle.archived_tasks.task is
'The row without its tokens: jsonb_populate_record(null::treadle.tasks, task) gives it back.';
comment on view treadle.archived_tasks is
'Pruned tasks: the whole row in task, and attempts, steps, waits and the rest as json.';

grant select on treadle.archived_tasks to treadle_observer, treadle_operator;
