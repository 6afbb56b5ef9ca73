-- archived_tasks: ended tasks that were pruned, with their most important fields.

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
  ) || coalesce(
    (
      select
        jsonb_build_object(
          'input_tokens', sum((calls.call -> 'input_tokens')::bigint),
          'output_tokens', sum((calls.call -> 'output_tokens')::bigint)
        )
      from jsonb_array_elements(task_history.spend) as calls (call)
      having count(*) > 0
    ),
    '{}'
  ) as task,
  task_history.attempts,
  task_history.steps,
  task_history.waits,
  task_history.dead_letters,
  task_history.spend,
  task_history.artifacts,
  task_history.events
from treadle.task_history;

comment on view treadle.archived_tasks is
'Pruned tasks: the whole row in task, and attempts, steps, waits and other parts as JSON.';
comment on column treadle.archived_tasks.id is 'Id of the task.';
comment on column treadle.archived_tasks.queue is 'Name of its queue.';
comment on column treadle.archived_tasks.type is 'Name of its task type.';
comment on column treadle.archived_tasks.title is 'Short text for people.';
comment on column treadle.archived_tasks.status is 'State in which it ended.';
comment on column treadle.archived_tasks.dag_id is 'Id of its DAG; null outside a DAG.';
comment on column treadle.archived_tasks.parent_id is 'Id of the task that spawned it.';
comment on column treadle.archived_tasks.created_at is 'When it was created.';
comment on column treadle.archived_tasks.completed_at is 'When the task ended.';
comment on column treadle.archived_tasks.archived_at is 'When it was pruned to the archive.';
comment on column treadle.archived_tasks.attempt is 'How many attempts it used.';
comment on column treadle.archived_tasks.completed_by is 'Agent that completed it.';
comment on column treadle.archived_tasks.failure_class is 'Class of the last failure.';
comment on column treadle.archived_tasks.failure_reason is 'Text of the last failure.';
comment on column treadle.archived_tasks.cost_usd is 'What it has cost, in dollars.';
comment on column treadle.archived_tasks.depends_on is 'Ids of the tasks that it depends on.';
comment on column treadle.archived_tasks.task is
'The whole row with its options, without its tokens. jsonb_populate_record with '
'null::treadle.tasks or null::treadle.task_options restores them.';
comment on column treadle.archived_tasks.attempts is 'Its attempts, as JSON.';
comment on column treadle.archived_tasks.steps is 'Its saved steps, as JSON.';
comment on column treadle.archived_tasks.waits is 'Its waits with their answers, as JSON.';
comment on column treadle.archived_tasks.dead_letters is 'Its dead letters, as JSON.';
comment on column treadle.archived_tasks.spend is 'Its paid calls, as JSON.';
comment on column treadle.archived_tasks.artifacts is 'Its artifacts, as JSON.';
comment on column treadle.archived_tasks.events is 'Its events, as JSON.';

grant select on treadle.archived_tasks to treadle_observer, treadle_operator;
