-- record_failures: count failed attempts towards the circuit breakers of their types.
--
-- Rate limits, refused claims, rejected outputs, exhausted budgets and database outages do not
-- count: they say nothing about whether the type works.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  breakers by type, after tasks and dags.

-- count_type_failures: count failed attempts of one type, and open its breaker after too many in a
-- row.
--
-- Concurrency: locks the breaker before reading it.
-- Lock order:  breakers.
create or replace function treadle.count_type_failures(
  p_type      text,
  p_attempts  treadle.ended_attempt[],
  p_now       timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_set     record := treadle.breaker_settings(p_type);
  v_breaker treadle.breakers;
  v_last    treadle.ended_attempt := p_attempts[cardinality(p_attempts)];
  v_failed  integer;
  v_lost    text;
  v_data    jsonb := jsonb_build_object(
    'task_id', v_last.task_id, 'class', v_last.class,
    'error', left(split_part(coalesce(v_last.error, v_last.reason), e'\n', 1), 500)
  );
begin
  if v_set.threshold > 0 then
    insert into treadle.breakers (type) values (p_type) on conflict (type) do nothing;
  end if;
  select breakers.* into v_breaker from treadle.breakers
  where breakers.type = p_type
  for no key update;

  if v_breaker.state in ('open', 'half_open') then
    -- From now on only the result of the probe counts.
    perform treadle.open_breaker(
      p_type, v_set.cooldown_s, 'the probe failed', ended.agent_id, p_now, v_data
    )
    from unnest(p_attempts) as ended
    where ended.task_id = v_breaker.probe_task and ended.claim_token = v_breaker.probe_token;
    return;
  end if;

  -- If a worker dies, all its tasks fail. They count as one failure, even if the reaper finds them
  -- one by one.
  select
    count(*) filter (where ended.reason <> 'heartbeat_timeout')
    + count(distinct ended.agent_id) filter (where ended.reason = 'heartbeat_timeout'),
    max(ended.agent_id) filter (where ended.reason = 'heartbeat_timeout')
  into v_failed, v_lost
  from unnest(p_attempts) as ended
  where
    ended.claimed_at > coalesce(v_breaker.opened_at, '-infinity')
    and not (
      ended.reason = 'heartbeat_timeout'
      and ended.agent_id is not distinct from v_breaker.lost_agent
      and ended.claimed_at <= v_breaker.last_failure_at
    );
  if v_set.threshold = 0 or v_failed = 0 then
    return;
  end if;

  update treadle.breakers
  set
    failures = breakers.failures + v_failed,
    last_failure_at = p_now,
    last_error = v_data ->> 'error',
    lost_agent = coalesce(v_lost, breakers.lost_agent)
  where breakers.type = p_type;
  if v_breaker.failures + v_failed >= v_set.threshold then
    perform treadle.open_breaker(
      p_type, v_set.first_probe_s, 'failures in a row', null, p_now,
      v_data || jsonb_build_object('failures', v_breaker.failures + v_failed)
    );
  end if;
end;
$$;

create or replace function treadle.record_failures(
  p_ended treadle.ended_attempt[], p_now timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_counted treadle.ended_attempt[] := array(
    select ended
    from unnest(p_ended) as ended
    where
      ended.class in ('error', 'crash', 'timeout', 'auth_failure')
      and ended.next <> 'cancelled'
      -- A task that was never started is not at fault.
      and ended.reason <> 'claim_expired'
  );
begin
  if v_counted = '{}' then
    return;
  end if;
  perform treadle.count_type_failures(failed.type, failed.attempts, p_now)
  from (
    select tasks.type, array_agg(ended) as attempts
    from unnest(v_counted) as ended
    inner join treadle.tasks on ended.task_id = tasks.id
    group by tasks.type
    order by tasks.type
  ) as failed;
end;
$$;

-- record_success: reset the breakers of completed types, and close a breaker whose probe succeeded.
--
-- Concurrency: reads once if no breaker has failures; otherwise locks the breakers before reading
-- them.
-- Lock order:  breakers by type, after tasks and dags.
create or replace function treadle.record_success(p_ids uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_types text[];
begin
  if not exists (
    select from treadle.breakers where breakers.failures > 0 or breakers.state <> 'closed'
  ) then
    return;
  end if;
  v_types := array(
    select distinct tasks.type
    from treadle.tasks
    inner join treadle.breakers on tasks.type = breakers.type
    where
      tasks.id = any (p_ids)
      and (
        (breakers.state = 'closed' and breakers.failures > 0)
        or (breakers.probe_task = tasks.id and breakers.probe_token = tasks.last_token)
      )
  );
  if v_types = '{}' then
    return;
  end if;

  perform breakers.type from treadle.breakers
  where breakers.type = any (v_types)
  order by breakers.type
  for no key update;
  update treadle.breakers
  set failures = 0
  where breakers.type = any (v_types) and breakers.state = 'closed' and breakers.failures > 0;
  perform treadle.close_breaker(breakers.type, 'the probe succeeded', tasks.completed_by, p_now)
  from treadle.breakers
  inner join treadle.tasks on breakers.probe_task = tasks.id
  where
    breakers.type = any (v_types)
    and breakers.state <> 'closed'
    and tasks.id = any (p_ids)
    and tasks.last_token = breakers.probe_token;
end;
$$;
