-- wait_details: what tasks wait for, and what was answered; open ones and ended ones.

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

grant select on treadle.wait_details to treadle_observer, treadle_operator;
