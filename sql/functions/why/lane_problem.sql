-- lane_problem: return the problem of a lane that needs attention; null if there is none.
--
-- Busy agents, rate limits, a gate that opens soon and tasks that wait for a dispatcher are normal
-- and are not reported.

-- is_closed_by_limit: return whether a gate was closed by its own limit and not by a person or a
-- provider.
create or replace function treadle.is_closed_by_limit(p_gate treadle.gates)
returns boolean
language sql
immutable
parallel safe
return p_gate.unit is not null and p_gate.closed_by is null and p_gate.reason = 'rate limit';

comment on function treadle.is_closed_by_limit(treadle.gates) is
'Whether a claim closed the gate because its rate limit was reached.';

-- why_paused: the queue or the type of a lane is paused.
create or replace function treadle.why_paused(p_lane treadle.lanes)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    format(
      '%s %s has been paused%s since %s%s', stopped.kind, stopped.name,
      coalesce(' by ' || stopped.paused_by, ''), treadle.format_utc(stopped.paused_at),
      coalesce(': ' || stopped.paused_reason, '')
    ),
    stopped.kind || '_paused',
    null::timestamptz,
    jsonb_strip_nulls(
      jsonb_build_object(
        stopped.kind, stopped.name, 'paused_by', stopped.paused_by,
        'paused_at', treadle.format_rfc3339(stopped.paused_at), 'message', stopped.paused_reason
      )
    )
  from (
    select
      'queue' as kind, queues.name, queues.paused_by, queues.paused_at, queues.paused_reason
    from treadle.queues
    where queues.name = p_lane.queue
    union all
    select
      'type', task_types.name, task_types.paused_by, task_types.paused_at,
      task_types.paused_reason
    from treadle.task_types
    where task_types.name = p_lane.type
  ) as stopped
  where stopped.paused_at is not null
  order by stopped.kind
$$;

-- why_breaker: the breaker of the type is open or half-open.
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
      'opened_at', treadle.format_rfc3339(v_breaker.opened_at), 'opened_by', v_breaker.opened_by,
      'probe_at', treadle.format_rfc3339(v_breaker.probe_at), 'probe_task', v_breaker.probe_task,
      'agent', v_agent,
      'message', treadle.last_line(v_breaker.last_error)
    )
  );
  if v_agent is not null then
    reason := 'breaker_half_open';
    sentence := format(
      'breaker of type %s is half-open: the probe runs on agent %s', p_lane.type, v_agent
    );
  elsif v_breaker.probe_at <= p_now then
    reason := 'breaker_probe';
    sentence := format('breaker of type %s allows one task to start, as a probe', p_lane.type);
  else
    reason := 'breaker_open';
    until := v_breaker.probe_at;
    sentence := format(
      'breaker of type %s is open until %s%s', p_lane.type,
      treadle.format_utc(v_breaker.probe_at),
      case
        when v_breaker.failures = 0 then ', opened by ' || v_breaker.opened_by
        else format(' after %s failures', v_breaker.failures)
      end || coalesce(': ' || treadle.last_line(v_breaker.last_error), '')
    );
  end if;
  return next;
end;
$$;

-- why_gates: gates of a lane that are closed.
create or replace function treadle.why_gates(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when treadle.is_closed_by_limit(gates) then format(
        'gate %s allows %s %s in %s; next room at %s', gates.key,
        trim_scale(gates.amount), gates.unit,
        treadle.format_duration(make_interval(secs => gates.period_s)),
        treadle.format_utc(gates.closed_until)
      )
      else format(
        'gate %s is closed until %s%s', gates.key, treadle.format_utc(gates.closed_until),
        coalesce(': ' || treadle.last_line(gates.reason), '')
      )
    end,
    case when treadle.is_closed_by_limit(gates) then 'gate_rate' else 'gate_closed' end,
    gates.closed_until,
    jsonb_strip_nulls(
      jsonb_build_object(
        'gate', gates.key, 'closed_until', treadle.format_rfc3339(gates.closed_until),
        'closed_at', treadle.format_rfc3339(gates.closed_at), 'closed_by', gates.closed_by,
        'message', gates.reason, 'slowdowns', gates.slowdowns, 'unit', gates.unit,
        'amount', gates.amount, 'period_s', gates.period_s
      )
    )
  from treadle.gates
  where
    gates.key = any (p_lane.gates)
    and gates.closed_until > p_now
    -- Tasks behind such a gate need more than a whole limit; see why_rates.
    and gates.key not like 'over:%'
  order by gates.closed_until desc, gates.key
$$;

-- why_lane: why a lane is closed to all agents, or has no agent.
create or replace function treadle.why_lane(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if treadle.assignment_of(p_lane.queue) = 'manual' then
    sentence := format(
      'tasks of queue %s are assigned by a dispatcher and cannot be claimed', p_lane.queue
    );
    reason := 'manual';
    detail := jsonb_build_object('queue', p_lane.queue);
    return next;
    return;
  end if;
  return query select * from treadle.why_paused(p_lane);
  return query select * from treadle.why_breaker(p_lane, p_now);
  return query select * from treadle.why_gates(p_lane, p_now);
  return query select * from treadle.why_agents(p_lane, p_now);
end;
$$;

create or replace function treadle.lane_problem(p_lane_id integer)
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_lane treadle.lanes;
  v_said text;
begin
  select lanes.* into v_lane from treadle.lanes where lanes.id = p_lane_id;
  select found.sentence
  into v_said
  from treadle.why_lane(v_lane, v_now) as found
  where
    found.reason not in ('agents_full', 'gate_rate', 'gate_closed', 'manual')
    or (found.reason = 'gate_closed' and found.until > v_now + interval '5 minutes')
  limit 1;
  if not found then
    -- Tasks behind such a gate need more than a whole limit.
    select gates.reason
    into v_said
    from treadle.gates
    where gates.key = any (v_lane.gates) and gates.key like 'over:%' and gates.closed_until > v_now
    limit 1;
  end if;
  return v_said;
end;
$$;

comment on function treadle.lane_problem(integer) is
'The first problem that keeps a lane closed and will not end soon by itself.';

grant execute on function treadle.is_closed_by_limit(treadle.gates) to
treadle_observer, treadle_operator;
grant execute on function treadle.lane_problem(integer) to treadle_observer, treadle_operator;
