-- why: list every reason why a task is not running now, the most important first.
--
-- select sentence from treadle.why('01a1e28c-006d-7ef2-834a-9098ae735bc9');
--
-- The reason is a stable code, detail has ids, names and numbers, and until is when the state can
-- change by itself. There is always at least one row; for a task that is running or has ended, the
-- row says so. `claimable` is returned only if the next claim of the named agent takes the task.
--
-- Concurrency: reads only, from one snapshot.
-- Raises:      TR201 task not found.

-- why_ended: the task has ended and will not run again by itself.
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
      then 'completed ' || treadle.format_duration(p_now - p_task.completed_at) || ' ago'
      || coalesce(' by agent ' || p_task.completed_by, '')
    when 'cancelled' then 'cancelled: ' || coalesce(v_said, 'no reason was given')
    else format(
      'dead-lettered after %s attempt%s: %s%s', p_task.attempt,
      case when p_task.attempt = 1 then '' else 's' end, p_task.failure_class || ': ',
      coalesce(v_said, 'no reason was given')
    )
  end;
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'completed_at', treadle.format_rfc3339(p_task.completed_at), 'agent', p_task.completed_by,
      'attempt', p_task.attempt, 'max_attempts', p_task.max_attempts,
      'class', p_task.failure_class, 'message', v_said
    )
  );
  return next;
end;
$$;

-- why_claimed: an agent has claimed the task; whether the claim is still valid.
create or replace function treadle.why_claimed(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_stale text := treadle.claim_expiry_reason(p_task, p_now);
begin
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'agent', p_task.agent_id, 'status', p_task.status, 'attempt', p_task.attempt,
      'max_attempts', p_task.max_attempts, 'claimed_at', treadle.format_rfc3339(p_task.claimed_at),
      'started_at', treadle.format_rfc3339(p_task.started_at),
      'heartbeat_at', treadle.format_rfc3339(p_task.heartbeat_at),
      'lease_until', treadle.format_rfc3339(p_task.lease_until), 'stale', v_stale
    )
  );
  if v_stale is not null then
    sentence := format(
      'the claim of agent %s has expired (%s), but no reaper has ended it', p_task.agent_id, v_stale
    );
    reason := 'claim_expired';
    return next;
  end if;

  sentence := format(
    '%s agent %s since %s%s',
    case p_task.status when 'claimed' then 'claimed by' else p_task.status || ' on' end,
    p_task.agent_id, treadle.format_utc(coalesce(p_task.started_at, p_task.claimed_at)),
    coalesce(
      ', heartbeat ' || treadle.format_duration(p_now - p_task.heartbeat_at) || ' ago',
      ', not started yet'
    )
  );
  reason := p_task.status;
  return next;
end;
$$;

-- why_work: a work item waits for its dispatcher, its agent, or for what its notes say.
create or replace function treadle.why_work(p_task treadle.tasks)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  reason := case p_task.status
    when 'created' then 'not_dispatched' when 'blocked' then 'work_blocked' else 'dispatched'
  end;
  sentence := case reason
    when 'not_dispatched' then 'queued: the dispatcher has not given it to an agent'
    when 'work_blocked'
      then 'blocked: ' || coalesce(
        treadle.last_line((treadle.options_of(p_task)).notes), 'no reason was given'
      )
    else format(
      'dispatched to %s, which has not picked it up',
      coalesce('agent ' || p_task.assigned_agent, 'nobody')
    )
  end;
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'agent', p_task.assigned_agent, 'status', treadle.work_status(p_task.status)
    )
  );
  return next;
end;
$$;

create or replace function treadle.why(p_id uuid)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_task treadle.tasks;
  v_lane treadle.lanes;
  v_said boolean := false;
begin
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id;
  if not found then
    perform treadle.raise_invalid_transition(p_id, 'running');
  end if;
  if v_task.completed_at is not null then
    return query select * from treadle.why_ended(v_task, v_now);
    return;
  elsif v_task.claim_token is not null then
    return query select * from treadle.why_claimed(v_task, v_now);
    return;
  end if;

  if v_task.status in ('created', 'ready', 'blocked')
    and treadle.assignment_of(v_task.queue) = 'manual' then
    return query select * from treadle.why_work(v_task);
    return;
  end if;

  select lanes.* into v_lane from treadle.lanes where lanes.id = v_task.lane_id;
  return query select * from treadle.why_waiting(v_task, v_now);
  v_said := found;
  return query select * from treadle.why_lane(v_lane, v_now);
  v_said := v_said or found;
  return query select * from treadle.why_rates(v_task, v_lane, v_now);
  v_said := v_said or found;
  return query select * from treadle.why_money(v_task, v_now);
  v_said := v_said or found;
  return query select * from treadle.why_agent_budgets(v_task, v_lane, v_now);
  v_said := v_said or found;
  if v_task.status = 'ready' then
    return query select * from treadle.why_turn(v_task, v_lane, v_now);
    v_said := v_said or found;
  end if;

  if not v_said then
    sentence := format('the task is %s, and no reason for waiting was found', v_task.status);
    reason := 'unknown';
    detail := jsonb_build_object('status', v_task.status);
    return next;
  end if;
end;
$$;

comment on function treadle.why(uuid) is
'Every reason why a task is not running now: a sentence, a code, until when, and the details.';

grant execute on function treadle.why(uuid) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
