-- why_breaker: tasks of its type failed in a row, and none is claimed until a probe went well.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_breaker(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_breaker treadle.breakers;
  v_agent   text;
begin
  select breakers.* into v_breaker
  from treadle.breakers
  where breakers.type = p_lane.type and breakers.state <> 'closed';
  if not found then
    return;
  end if;

  select tasks.agent_id
  into v_agent
  from treadle.tasks
  where tasks.id = v_breaker.probe_task and tasks.claim_token = v_breaker.probe_token;
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'type', p_lane.type, 'state', v_breaker.state, 'failures', v_breaker.failures,
      'opened_at', treadle.stamp(v_breaker.opened_at), 'opened_by', v_breaker.opened_by,
      'probe_at', treadle.stamp(v_breaker.probe_at), 'probe_task', v_breaker.probe_task,
      'agent', v_agent,
      'said', treadle.last_line(v_breaker.last_error)
    )
  );
  if v_agent is not null then
    reason := 'breaker_half_open';
    sentence := format(
      'breaker of type %s is half-open: the probe runs on agent %s', p_lane.type, v_agent
    );
  elsif v_breaker.probe_at <= p_now then
    reason := 'breaker_probe';
    sentence := format('breaker of type %s lets one task through, as a probe', p_lane.type);
  else
    reason := 'breaker_open';
    until := v_breaker.probe_at;
    sentence := format(
      'breaker of type %s is open until %s%s', p_lane.type,
      treadle.utc_words(v_breaker.probe_at),
      case
        when v_breaker.failures = 0 then ', opened by ' || v_breaker.opened_by
        else format(' after %s failures', v_breaker.failures)
      end || coalesce(': ' || treadle.last_line(v_breaker.last_error), '')
    );
  end if;
  return next;
end;
$$;

comment on function treadle.why_breaker(treadle.lanes, timestamptz) is
'Internal: that the breaker of a type is open or half-open, and until when.';

revoke all on function treadle.why_breaker(treadle.lanes, timestamptz) from public;
