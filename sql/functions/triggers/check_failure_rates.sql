-- check_failure_rates: emit type.failure_rate_exceeded for types that fail more often than a
-- trigger allows.
--
-- The trigger fires on that event as on any other. Each trigger is checked once a minute and emits
-- the event at most once per window.
--
-- Concurrency: locked triggers are skipped; the time of the last check is stored on the locked row.
-- Lock order:  triggers (skips locked rows), events.

-- failure_counts: count the attempts of a type that ended, and that failed, since a given time.
--
-- Only the newest failures are read, up to a limit; with more of them, the window starts later.
-- Successes are counted only until it is certain that the rate is within the limit.
create or replace function treadle.failure_counts(
  p_type          text,
  p_since         timestamptz,
  p_now           timestamptz,
  p_limit         numeric,
  p_min_attempts  bigint
)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  c_most constant integer := 20000;
  v_since     timestamptz := p_since;
  v_failed    bigint;
  v_completed bigint;
begin
  select greatest(p_since, min(newest.ended_at) filter (where newest.at = c_most))
  into v_since
  from (
    select attempts.ended_at, row_number() over (order by attempts.ended_at desc) as at
    from treadle.attempts
    where attempts.ended_at > p_since and attempts.ended_at <= p_now
    order by attempts.ended_at desc
    limit c_most
  ) as newest;

  select count(*)
  into v_failed
  from treadle.attempts
  inner join treadle.tasks on attempts.task_id = tasks.id
  where
    attempts.ended_at > v_since and attempts.ended_at <= p_now and attempts.outcome = 'failed'
    and tasks.type = p_type;

  select count(*)
  into v_completed
  from (
    select from treadle.tasks
    where
      tasks.completed_at > v_since and tasks.completed_at <= p_now
      and tasks.status = 'completed' and tasks.type = p_type
    -- Without a failure one success is enough; with a limit of 0 all are counted.
    limit case
      when v_failed = 0 then 1
      when p_limit > 0 then greatest(
        ceil(v_failed * (1 - p_limit) / p_limit), p_min_attempts - v_failed
      )
    end
  ) as good;

  return jsonb_build_object(
    'type', p_type, 'since', v_since, 'until', p_now, 'attempts', v_failed + v_completed,
    'failed', v_failed, 'rate', round(v_failed::numeric / greatest(v_failed + v_completed, 1), 4)
  );
end;
$$;

-- common_errors: return the most common kinds of errors among the newest failures of a type.
create or replace function treadle.common_errors(
  p_type   text,
  p_since  timestamptz,
  p_now    timestamptz
)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  with failed as (
    select attempts.task_id, attempts.class, attempts.ended_at, attempts.error, attempts.reason
    from treadle.attempts
    inner join treadle.tasks on attempts.task_id = tasks.id
    where
      attempts.ended_at > p_since and attempts.ended_at <= p_now and attempts.outcome = 'failed'
      and tasks.type = p_type
    order by attempts.ended_at desc
    limit 500
  ),

  alike as (
    select
      failed.class,
      treadle.error_fingerprint(
        failed.class, treadle.error_pattern(coalesce(failed.error, failed.reason))
      ) as fingerprint,
      count(*) as times,
      (array_agg(failed.task_id order by failed.ended_at desc))[1] as task_id,
      left(
        (array_agg(coalesce(failed.error, failed.reason) order by failed.ended_at desc))[1], 500
      ) as error
    from failed
    group by 1, 2
    order by times desc, fingerprint
    limit 5
  )

  select coalesce(jsonb_agg(to_jsonb(alike) order by alike.times desc, alike.fingerprint), '[]')
  from alike
$$;

create or replace function treadle.check_failure_rates()
returns table (id uuid, name text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := treadle.clock();
  v_trigger treadle.triggers;
  v_window  interval;
  v_limit   numeric;
  v_least   bigint;
  v_counts jsonb;
  v_passes  boolean;
begin
  for v_trigger in
    select triggers.*
    from treadle.triggers
    where
      triggers.failure_rate is not null and triggers.paused_at is null
      and coalesce(triggers.checked_at <= v_now - interval '1 minute', true)
    order by triggers.id
    for no key update skip locked
  loop
    v_window := make_interval(secs => (v_trigger.failure_rate ->> 'window_s')::float8);
    v_limit := (v_trigger.failure_rate ->> 'limit')::numeric;
    v_least := coalesce((v_trigger.failure_rate ->> 'min_attempts')::numeric, 20);
    v_passes := coalesce(v_trigger.passed_at <= v_now - v_window, true);
    if v_passes then
      v_counts := treadle.failure_counts(
        v_trigger.failure_rate ->> 'type', v_now - v_window, v_now, v_limit, v_least
      );
      v_passes :=
        (v_counts ->> 'failed')::numeric > v_limit * (v_counts ->> 'attempts')::numeric
        and (v_counts ->> 'attempts')::bigint >= v_least;
    end if;
    update treadle.triggers
    set
      checked_at = v_now,
      passed_at = case when v_passes then v_now else triggers.passed_at end
    where triggers.id = v_trigger.id;
    if v_passes then
      insert into treadle.events (at, kind, key, data)
      values (
        v_now, 'type.failure_rate_exceeded', v_trigger.name,
        v_trigger.failure_rate || v_counts || jsonb_build_object(
          'errors', treadle.common_errors(v_counts ->> 'type', v_now - v_window, v_now)
        )
      );
      return query select v_trigger.id, v_trigger.name;
    end if;
  end loop;
end;
$$;

comment on function treadle.check_failure_rates() is
'Emit an event for types whose failure rate exceeds the limit of a trigger; returns the triggers.';

grant execute on function treadle.check_failure_rates() to treadle_worker;
