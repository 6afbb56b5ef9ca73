-- task_steps: the saved steps of each task, in order.

create view treadle.task_steps as
select
  steps.task_id,
  steps.seq,
  steps.name,
  steps.kind,
  tasks.queue,
  tasks.type,
  tasks.title,
  tasks.status,
  steps.input,
  steps.output,
  steps.attempt,
  steps.agent_id,
  steps.started_at,
  steps.saved_at,
  round(extract(epoch from steps.saved_at - steps.started_at), 3) as run_s,
  steps.cost_usd,
  task_options.forked_from
from treadle.steps
inner join treadle.tasks on steps.task_id = tasks.id
left join treadle.task_options on tasks.has_options and tasks.id = task_options.task_id;

comment on view treadle.task_steps is
'One row per saved step, including answers and subtasks. Filter by task_id, order by seq.';
comment on column treadle.task_steps.task_id is 'Id of the task.';
comment on column treadle.task_steps.seq is 'Position among the steps of the task.';
comment on column treadle.task_steps.name is 'Name of the step.';
comment on column treadle.task_steps.kind is 'step, spawn, wait or sleep.';
comment on column treadle.task_steps.queue is 'Name of its queue.';
comment on column treadle.task_steps.type is 'Name of its task type.';
comment on column treadle.task_steps.title is 'Short text for people.';
comment on column treadle.task_steps.status is 'State of the task.';
comment on column treadle.task_steps.input is 'Hash of the input of the step.';
comment on column treadle.task_steps.output is 'Result of the step.';
comment on column treadle.task_steps.attempt is 'Attempt that saved it.';
comment on column treadle.task_steps.agent_id is 'Agent that saved it.';
comment on column treadle.task_steps.started_at is 'When the step started.';
comment on column treadle.task_steps.saved_at is 'When it was saved.';
comment on column treadle.task_steps.run_s is 'How many seconds it took.';
comment on column treadle.task_steps.cost_usd is 'What it has cost, in dollars.';
comment on column treadle.task_steps.forked_from is 'Task that the step was copied from.';

grant select on treadle.task_steps to treadle_observer, treadle_operator;
