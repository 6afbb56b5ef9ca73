-- record_attempts: write the history of ended attempts: attempts, dead letters, events.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  attempts, dead_letters, events.
-- Raises:      nothing.

create or replace function treadle.record_attempts(
  p_ended  treadle.ended_attempt[],
  p_now    timestamptz
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.attempts (
    task_id, claim_token, attempt, agent_id, claimed_at, started_at, ended_at, outcome, class,
    reason, error, cost_usd, model
  )
  select
    ended.task_id,
    ended.claim_token,
    ended.attempt,
    ended.agent_id,
    ended.claimed_at,
    ended.started_at,
    p_now,
    case
      when ended.next = 'cancelled' then 'cancelled'
      when ended.refunded then 'rate_limited'
      else 'failed'
    end,
    ended.class,
    ended.reason,
    ended.error,
    treadle.attempt_cost(ended.task_id, ended.cost_usd),
    ended.model
  from unnest(p_ended) as ended;

  insert into treadle.dead_letters (
    task_id, dead_lettered_at, attempts, class, reason, poison_pill, total_cost_usd, about,
    fingerprint
  )
  select
    ended.task_id, p_now, ended.attempt, ended.class,
    left(split_part(coalesce(ended.error, ended.reason), e'\n', 1), 2000),
    ended.poison_pill, ended.cost_usd, said.about,
    treadle.error_fingerprint(ended.class, said.about)
  from unnest(p_ended) as ended
  cross join lateral (
    select
      coalesce(
        treadle.error_about(ended.error), treadle.error_about(ended.reason), ended.class
      ) as about
    offset 0
  ) as said
  where ended.next = 'dead_lettered';

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    p_now,
    'task.' || ended.next,
    ended.task_id,
    (select tasks.queue from treadle.tasks where tasks.id = ended.task_id),
    ended.agent_id,
    jsonb_build_object(
      'attempt', ended.attempt,
      'class', ended.class,
      'reason', left(split_part(coalesce(ended.error, ended.reason), e'\n', 1), 500),
      'poison_pill', ended.poison_pill
    ) || coalesce(
      (
        select treadle.letter_facts(dead_letters)
        from treadle.dead_letters
        where
          ended.next = 'dead_lettered'
          and dead_letters.task_id = ended.task_id and dead_letters.resolution is null
      ),
      '{}'
    )
  from unnest(p_ended) as ended
  where ended.next in ('dead_lettered', 'cancelled');
$$;

comment on function treadle.record_attempts(treadle.ended_attempt[], timestamptz) is
'Internal: appends ended attempts and what follows from them to the history.';

revoke all on function treadle.record_attempts(treadle.ended_attempt[], timestamptz) from public;
