-- dead_letter_review: tasks that gave up, with their whole history, for the person who decides.

create view treadle.dead_letter_review as
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
    from treadle.dead_letter_history as past
    where past.letter_id = dead_letters.id
  ) as history,
  dead_letters.fingerprint,
  dead_letters.about,
  dead_letters.escalated_at,
  dead_letters.escalated_to
from treadle.dead_letters
inner join treadle.tasks on dead_letters.task_id = tasks.id;

comment on view treadle.dead_letter_review is
'Dead letters with failure history, total cost and what was decided; open ones are not reviewed.';

grant select on treadle.dead_letter_review to treadle_observer, treadle_operator;
