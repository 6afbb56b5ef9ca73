-- dead_letter_attempts: every attempt that led to a dead letter: agent, duration, cost and error.

create view treadle.dead_letter_attempts as
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

comment on view treadle.dead_letter_attempts is
'The attempts of a dead letter, including those of earlier rounds.';
comment on column treadle.dead_letter_attempts.letter_id is 'Id of the dead letter.';
comment on column treadle.dead_letter_attempts.task_id is 'Id of the task.';
comment on column treadle.dead_letter_attempts.attempt is 'Number of the attempt, from 1.';
comment on column treadle.dead_letter_attempts.agent_id is 'Id of the agent.';
comment on column treadle.dead_letter_attempts.claimed_at is 'When the attempt was claimed.';
comment on column treadle.dead_letter_attempts.started_at is
'When the handler started; null if it has not.';
comment on column treadle.dead_letter_attempts.ended_at is 'When the attempt ended.';
comment on column treadle.dead_letter_attempts.duration_s is 'How many seconds the attempt took.';
comment on column treadle.dead_letter_attempts.cost_usd is 'What it has cost, in dollars.';
comment on column treadle.dead_letter_attempts.model is 'Model that the attempt used.';
comment on column treadle.dead_letter_attempts.outcome is 'How the attempt ended.';
comment on column treadle.dead_letter_attempts.class is 'Failure class.';
comment on column treadle.dead_letter_attempts.reason is 'Text of the failure.';
comment on column treadle.dead_letter_attempts.error is 'Full error text, such as a traceback.';

grant select on treadle.dead_letter_attempts to treadle_observer, treadle_operator;
