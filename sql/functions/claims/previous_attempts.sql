-- previous_attempts: what the attempts before this one came to, for the next one to learn from.
--
-- Errors, what validators had against the output (feedback), what the attempt itself left (notes),
-- and what a person said who gave the task another round (review).
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.previous_attempts(p_id uuid)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_agg(
      jsonb_build_object(
        'attempt', past.attempt,
        'agent', past.agent_id,
        'model', past.model,
        'outcome', past.outcome,
        'class', past.class,
        'reason', past.reason,
        'error', left(past.error, 2000),
        'feedback', coalesce(past.feedback, '[]'),
        'notes', (
          select coalesce(jsonb_agg(left_by.note -> 'note' order by left_by.at), '[]')
          from treadle.tasks
          cross join lateral jsonb_array_elements(tasks.attempt_notes)
            with ordinality as left_by (note, at)
          where tasks.id = p_id and left_by.note ->> 'token' = past.claim_token::text
        ),
        'review', (
          select
            jsonb_build_object(
              'by', dead_letters.reviewer, 'resolution', dead_letters.resolution,
              'note', dead_letters.note, 'at', dead_letters.resolved_at
            )
          from treadle.dead_letters
          where
            dead_letters.task_id = p_id
            and dead_letters.dead_lettered_at = past.ended_at
            and dead_letters.resolution is not null
          limit 1
        ),
        'cost_usd', past.cost_usd,
        'ended_at', past.ended_at,
        'duration_s', extract(
          epoch from past.ended_at - coalesce(past.started_at, past.claimed_at)
        )
      )
      order by past.ended_at
    )
  from (
    select attempts.*
    from treadle.attempts
    where attempts.task_id = p_id and attempts.outcome <> 'suspended'
    order by attempts.ended_at desc
    limit 20
  ) as past
$$;

comment on function treadle.previous_attempts(uuid) is
'Internal: the last twenty ended attempts of a task as json, oldest first.';

revoke all on function treadle.previous_attempts(uuid) from public;
