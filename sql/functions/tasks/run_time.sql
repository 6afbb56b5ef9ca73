-- run_time: return how long the handlers of all attempts of a task have run so far; null: not yet.
--
-- The rest of its life a task waits: for its time, for other tasks, for an agent, for a retry, for
-- answers. An attempt that was ended and whose result was accepted all the same is counted once.

create or replace function treadle.run_time(
  p_task          uuid,
  p_status        text,
  p_started_at    timestamptz,
  p_completed_at  timestamptz,
  p_now           timestamptz
)
returns interval
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select sum(spans.span)
  from (
    select attempts.ended_at - attempts.started_at as span
    from treadle.attempts
    where attempts.task_id = p_task
    union all
    select
      coalesce(p_completed_at, p_now) - greatest(
        p_started_at,
        (select max(attempts.ended_at) from treadle.attempts where attempts.task_id = p_task)
      )
    where
      p_started_at is not null
      and p_status in ('claimed', 'running', 'validating', 'completed')
  ) as spans
$$;

comment on function treadle.run_time(uuid, text, timestamptz, timestamptz, timestamptz) is
'How long the attempts of a task have run so far; null if none has started.';

grant execute on function treadle.run_time(uuid, text, timestamptz, timestamptz, timestamptz) to
treadle_observer, treadle_operator;
