-- why_time: a task waits for its moment, or that has come and no promoter saw it.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_time(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at timestamptz := coalesce(p_task.retry_at, p_task.run_at);
begin
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'run_at', treadle.stamp(p_task.run_at), 'retry_at', treadle.stamp(p_task.retry_at),
      'attempt', p_task.attempt,
      'max_attempts', p_task.max_attempts, 'class', p_task.failure_class
    )
  );
  if v_at > p_now then
    until := v_at;
    reason := case when p_task.status = 'retrying' then 'retry_at' else 'run_at' end;
    sentence := case reason
      when 'retry_at' then format(
        'next attempt in %s, after: %s', treadle.span_words(v_at - p_now),
        coalesce(
          p_task.failure_class || coalesce(': ' || treadle.last_line(p_task.failure_reason), ''),
          'no reason was given'
        )
      )
      else format(
        'not before %s, in %s', treadle.utc_words(v_at), treadle.span_words(v_at - p_now)
      )
    end;
    return next;
  elsif
    p_task.status = 'retrying'
    or (
      p_task.status = 'pending' and p_task.blocked_count = 0 and p_task.slot is null
      and p_task.budget_id is null and v_at is not null
    )
  then
    reason := 'promoter';
    sentence := format(
      'due since %s, and no promoter has looked since (treadle promoter)',
      treadle.utc_words(v_at)
    );
    return next;
  end if;
end;
$$;

comment on function treadle.why_time(treadle.tasks, timestamptz) is
'Internal: when a task may start, or that nobody noticed that it may.';

revoke all on function treadle.why_time(treadle.tasks, timestamptz) from public;
