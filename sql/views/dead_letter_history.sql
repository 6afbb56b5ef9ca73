-- dead_letter_history: every attempt that led to a dead letter: who, how long, what it cost, why.

create view treadle.dead_letter_history as
select
  dead_letters.id as letter_id,
  dead_letters.task_id,
  attempts.attempt,
  attempts.agent_id,
  attempts.claimed_at,
  attempts.started_at,
  attempts.ended_at,
  round(
    extract(epoch from attempts.ended_at - coalesce(attempts.started_at, attempts.claimed_at)), 3
  ) as duration_s,
  attempts.cost_usd,
  coalesce(
    attempts.model,
    (
      select string_agg(distinct spend.model, ', ' order by spend.model)
      from treadle.spend
      where spend.task_id = attempts.task_id and spend.attempt = attempts.attempt
    )
  ) as model,
  attempts.outcome,
  attempts.class,
  attempts.reason,
  attempts.error
from treadle.dead_letters
inner join treadle.attempts
  on
    dead_letters.task_id = attempts.task_id
    and dead_letters.dead_lettered_at >= attempts.ended_at;

comment on view treadle.dead_letter_history is
'The attempts of a dead letter up to its end, those of earlier rounds included.';

grant select on treadle.dead_letter_history to treadle_observer, treadle_operator;
