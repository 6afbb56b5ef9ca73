-- task_steps: what each task has done and remembers, in order.

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
  tasks.forked_from
from treadle.steps
inner join treadle.tasks on steps.task_id = tasks.id;

comment on view treadle.task_steps is
'One row per saved step, answers and subtasks included; filter by task_id, order by seq.';

grant select on treadle.task_steps to treadle_observer, treadle_operator;
