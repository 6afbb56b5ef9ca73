-- check_failure_rates: say type.failing of types that fail more often than a trigger allows.
--
-- The trigger fires on that event like on any other. Each is looked at once a minute, and says it
-- once in its window, whatever happens in it.
--
-- Concurrency: triggers that others look at are skipped; the time is on the row that is held.
-- Lock order:  triggers (never waited for), events.
-- Raises:      nothing.

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
  v_figures jsonb;
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
      v_figures := treadle.failure_figures(
        v_trigger.failure_rate ->> 'type', v_now - v_window, v_now, v_limit, v_least
      );
      v_passes :=
        (v_figures ->> 'failed')::numeric > v_limit * (v_figures ->> 'attempts')::numeric
        and (v_figures ->> 'attempts')::bigint >= v_least;
    end if;
    update treadle.triggers
    set
      checked_at = v_now,
      passed_at = case when v_passes then v_now else triggers.passed_at end
    where triggers.id = v_trigger.id;
    if v_passes then
      insert into treadle.events (at, kind, key, data)
      values (
        v_now, 'type.failing', v_trigger.name,
        v_trigger.failure_rate || v_figures || jsonb_build_object(
          'errors', treadle.common_errors(v_figures ->> 'type', v_now - v_window, v_now)
        )
      );
      return query select v_trigger.id, v_trigger.name;
    end if;
  end loop;
end;
$$;

comment on function treadle.check_failure_rates() is
'Say of types whose failures pass the limit of a trigger; returns those triggers.';

revoke all on function treadle.check_failure_rates() from public;
grant execute on function treadle.check_failure_rates() to treadle_worker;
