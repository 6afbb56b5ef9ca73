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
          'attempt', attempts.attempt,
          'agent', attempts.agent_id,
          'class', attempts.class,
          'reason', attempts.reason,
          'error', attempts.error,
          'duration_s', round(
            extract(
              epoch from attempts.ended_at - coalesce(attempts.started_at, attempts.claimed_at)
            ),
            3
          ),
          'cost_usd', attempts.cost_usd,
          'ended_at', attempts.ended_at
        )
        order by attempts.ended_at
      )
    from treadle.attempts
    where attempts.task_id = dead_letters.task_id
  ) as history
from treadle.dead_letters
inner join treadle.tasks on dead_letters.task_id = tasks.id;

comment on view treadle.dead_letter_review is
'Dead letters with failure history, total cost and what was decided; open ones are not reviewed.';

grant select on treadle.dead_letter_review to treadle_observer, treadle_operator;
