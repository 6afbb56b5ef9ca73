-- why_ended: how a task ended that will not run again by itself.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_ended(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_said text := treadle.last_line(p_task.failure_reason);
begin
  reason := p_task.status;
  sentence := case p_task.status
    when 'completed'
      then 'completed ' || treadle.span_words(p_now - p_task.completed_at) || ' ago'
      || coalesce(' by agent ' || p_task.completed_by, '')
    when 'cancelled' then 'cancelled: ' || coalesce(v_said, 'no reason was given')
    else format(
      'gave up after %s attempt%s: %s%s', p_task.attempt,
      case when p_task.attempt = 1 then '' else 's' end, p_task.failure_class || ': ',
      coalesce(v_said, 'no reason was given')
    )
  end;
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'completed_at', treadle.stamp(p_task.completed_at), 'agent', p_task.completed_by,
      'attempt', p_task.attempt, 'max_attempts', p_task.max_attempts,
      'class', p_task.failure_class, 'said', v_said
    )
  );
  return next;
end;
$$;

comment on function treadle.why_ended(treadle.tasks, timestamptz) is
'Internal: that a task is completed, gave up or was cancelled.';

revoke all on function treadle.why_ended(treadle.tasks, timestamptz) from public;
