-- wait_details: what tasks wait for or waited for, and the answers.

create view treadle.wait_details as
select
  waits.id,
  waits.task_id,
  waits.name,
  waits.kind,
  waits.status,
  waits.awaited,
  waits.question,
  waits.context,
  waits.options,
  waits.schema,
  waits.approvers,
  coalesce(votes.answers, '[]') as answers,
  waits.event,
  waits.event_key,
  waits.event_id,
  waits.expires_at,
  waits.on_expiry,
  waits.default_answer,
  waits.escalated_at,
  waits.answer,
  waits.answered_by,
  waits.note,
  waits.opened_at,
  waits.ended_at,
  tasks.type,
  tasks.title,
  tasks.queue,
  tasks.status as task_status,
  tasks.name as task_name,
  tasks.dag_id,
  dags.name as dag_name,
  tasks.project_id
from treadle.waits
inner join treadle.tasks on waits.task_id = tasks.id
left join treadle.dags on tasks.dag_id = dags.id
left join lateral (
  select
    jsonb_agg(
      jsonb_build_object(
        'actor', answers.actor, 'value', answers.value, 'note', answers.note, 'at', answers.at
      )
      order by answers.at, answers.actor
    ) as answers
  from treadle.answers
  where answers.wait_id = waits.id
) as votes on true;

comment on view treadle.wait_details is
'Questions, approvals and events that tasks wait for or waited for, with every answer.';
comment on column treadle.wait_details.id is 'Id of the wait.';
comment on column treadle.wait_details.task_id is 'Id of the task.';
comment on column treadle.wait_details.name is 'Name of the wait in its task.';
comment on column treadle.wait_details.kind is 'question, approval, event or budget.';
comment on column treadle.wait_details.status is 'open, answered, expired or cancelled.';
comment on column treadle.wait_details.awaited is 'Whether the task is suspended until it ends.';
comment on column treadle.wait_details.question is 'What is asked.';
comment on column treadle.wait_details.context is 'Data that helps to answer.';
comment on column treadle.wait_details.options is 'Allowed answers.';
comment on column treadle.wait_details.schema is 'JSON schema of the answer.';
comment on column treadle.wait_details.approvers is 'How many people must give the same answer.';
comment on column treadle.wait_details.answers is 'Answers so far, as JSON.';
comment on column treadle.wait_details.event is 'Name of the event.';
comment on column treadle.wait_details.event_key is 'Key of the event.';
comment on column treadle.wait_details.event_id is 'Id of the event that ended it.';
comment on column treadle.wait_details.expires_at is 'When it expires.';
comment on column treadle.wait_details.on_expiry is
'What happens then: deny, fail, default or escalate.';
comment on column treadle.wait_details.default_answer is 'Answer if it expires with default.';
comment on column treadle.wait_details.escalated_at is 'When it was escalated.';
comment on column treadle.wait_details.answer is 'Final answer.';
comment on column treadle.wait_details.answered_by is 'Actor that gave the final answer.';
comment on column treadle.wait_details.note is 'Note with the answer.';
comment on column treadle.wait_details.opened_at is 'When it was opened.';
comment on column treadle.wait_details.ended_at is 'When it ended; null while it is open.';
comment on column treadle.wait_details.type is 'Name of its task type.';
comment on column treadle.wait_details.title is 'Short text for people.';
comment on column treadle.wait_details.queue is 'Name of its queue.';
comment on column treadle.wait_details.task_status is 'State of its task.';
comment on column treadle.wait_details.task_name is 'Name of its task in the DAG.';
comment on column treadle.wait_details.dag_id is 'Id of its DAG; null outside a DAG.';
comment on column treadle.wait_details.dag_name is 'Name of its DAG.';
comment on column treadle.wait_details.project_id is 'Id of its project.';

grant select on treadle.wait_details to treadle_observer, treadle_operator;
