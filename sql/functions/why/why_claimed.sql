-- why_claimed: who has a task, and whether the claim still holds.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_claimed(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stale text := treadle.stale_reason(p_task, p_now);
begin
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'agent', p_task.agent_id, 'status', p_task.status, 'attempt', p_task.attempt,
      'max_attempts', p_task.max_attempts, 'claimed_at', treadle.stamp(p_task.claimed_at),
      'started_at', treadle.stamp(p_task.started_at),
      'heartbeat_at', treadle.stamp(p_task.heartbeat_at),
      'lease_until', treadle.stamp(p_task.lease_until), 'stale', v_stale
    )
  );
  if v_stale is not null then
    sentence := format(
      'the claim of %s ran out and no reaper took it back (%s)', p_task.agent_id, v_stale
    );
    reason := 'claim_ran_out';
    return next;
  end if;

  sentence := format(
    '%s agent %s since %s%s',
    case p_task.status when 'claimed' then 'claimed by' else p_task.status || ' on' end,
    p_task.agent_id, treadle.utc_words(coalesce(p_task.started_at, p_task.claimed_at)),
    coalesce(
      ', heartbeat ' || treadle.span_words(p_now - p_task.heartbeat_at) || ' ago',
      ', not started yet'
    )
  );
  reason := p_task.status;
  return next;
end;
$$;

comment on function treadle.why_claimed(treadle.tasks, timestamptz) is
'Internal: on which agent a task is, and that its claim ran out.';

revoke all on function treadle.why_claimed(treadle.tasks, timestamptz) from public;
