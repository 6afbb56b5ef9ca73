-- previous_attempts: what the attempts before this one came to, for the next one to learn from.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.previous_attempts(p_id uuid)
returns jsonb
language sql
stable
set search_path = ''
as $$
  select
    jsonb_agg(
      jsonb_build_object(
        'attempt', past.attempt,
        'agent', past.agent_id,
        'outcome', past.outcome,
        'class', past.class,
        'reason', past.reason,
        'error', left(past.error, 2000),
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
