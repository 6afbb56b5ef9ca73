-- dead_letter_details: dead-lettered tasks with their whole history, for review.

create view treadle.dead_letter_details as
select
  dead_letters.id,
  dead_letters.task_id,
  tasks.queue,
  tasks.type,
  tasks.title,
  tasks.dag_id,
  dead_letters.class,
  dead_letters.reason,
  dead_letters.poison_pill,
  dead_letters.attempts,
  dead_letters.total_cost_usd,
  dead_letters.dead_lettered_at,
  dead_letters.resolution is not null as reviewed,
  dead_letters.resolution,
  dead_letters.resolved_at,
  dead_letters.reviewer,
  dead_letters.note,
  tasks.spec,
  (
    select
      jsonb_agg(
        jsonb_build_object(
          'attempt', past.attempt,
          'agent', past.agent_id,
          'outcome', past.outcome,
          'class', past.class,
          'reason', past.reason,
          'error', past.error,
          'model', past.model,
          'duration_s', past.duration_s,
          'cost_usd', past.cost_usd,
          'ended_at', past.ended_at
        )
        order by past.ended_at, past.attempt
      )
    from treadle.dead_letter_attempts as past
    where past.letter_id = dead_letters.id
  ) as history,
  dead_letters.fingerprint,
  dead_letters.about,
  dead_letters.escalated_at,
  dead_letters.escalated_to
from treadle.dead_letters
inner join treadle.tasks on dead_letters.task_id = tasks.id;

comment on view treadle.dead_letter_details is
'Dead letters with failure history, total cost and decision; reviewed is false for open ones.';
comment on column treadle.dead_letter_details.id is 'Id of the dead letter.';
comment on column treadle.dead_letter_details.task_id is 'Id of the task.';
comment on column treadle.dead_letter_details.queue is 'Name of its queue.';
comment on column treadle.dead_letter_details.type is 'Name of its task type.';
comment on column treadle.dead_letter_details.title is 'Short text for people.';
comment on column treadle.dead_letter_details.dag_id is 'Id of its DAG; null outside a DAG.';
comment on column treadle.dead_letter_details.class is 'Failure class.';
comment on column treadle.dead_letter_details.reason is 'Text of the failure.';
comment on column treadle.dead_letter_details.poison_pill is
'Whether the task killed several workers.';
comment on column treadle.dead_letter_details.attempts is 'How many attempts were used.';
comment on column treadle.dead_letter_details.total_cost_usd is 'What the task cost, in dollars.';
comment on column treadle.dead_letter_details.dead_lettered_at is
'When the task was dead-lettered.';
comment on column treadle.dead_letter_details.reviewed is 'Whether it was decided.';
comment on column treadle.dead_letter_details.resolution is
'Decision: retry, modify_and_retry or cancel.';
comment on column treadle.dead_letter_details.resolved_at is 'When it was decided.';
comment on column treadle.dead_letter_details.reviewer is 'Actor that decided.';
comment on column treadle.dead_letter_details.note is 'Note of the actor that decided.';
comment on column treadle.dead_letter_details.spec is 'Payload of the task.';
comment on column treadle.dead_letter_details.history is 'All attempts, as JSON.';
comment on column treadle.dead_letter_details.fingerprint is
'Identifier shared by errors of the same kind.';
comment on column treadle.dead_letter_details.about is
'First line of the error with variable parts replaced.';
comment on column treadle.dead_letter_details.escalated_at is 'When it was escalated.';
comment on column treadle.dead_letter_details.escalated_to is 'Person that it was assigned to.';

grant select on treadle.dead_letter_details to treadle_observer, treadle_operator;
