-- trip_breaker: open the breaker of a type manually; its probe is due after p_seconds.
--
-- select treadle.trip_breaker('deploy', 600, 'the cluster is being moved');
--
-- Concurrency: a claim in progress may still take tasks of the type.
-- Lock order:  breakers.
-- Raises:      TR001 invalid argument, TR203 unknown type.

-- breaker_settings: return the failure threshold and the cool-down times of a type's breaker.
create or replace function treadle.breaker_settings(
  p_type  text,
  out threshold      integer,
  out first_probe_s  double precision,
  out cooldown_s     double precision
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce((task_types.breaker ->> 'threshold')::integer, 5),
    coalesce((task_types.breaker ->> 'first_probe_s')::float8, 60),
    coalesce((task_types.breaker ->> 'cooldown_s')::float8, 300)
  from treadle.task_types
  where task_types.name = p_type
$$;

-- open_breaker: open a breaker and emit an event.
--
-- Concurrency: the caller has locked the breaker.
-- Lock order:  breakers.
create or replace function treadle.open_breaker(
  p_type     text,
  p_seconds  double precision,
  p_why      text,
  p_actor    text,
  p_now      timestamptz,
  p_data     jsonb default '{}'
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_probe_at timestamptz := p_now + make_interval(secs => p_seconds);
begin
  update treadle.breakers
  set
    state = 'open',
    opened_at = p_now,
    opened_by = p_actor,
    probe_at = v_probe_at,
    probe_task = null,
    probe_token = null
  where breakers.type = p_type;
  insert into treadle.events (at, kind, actor, data)
  values (
    p_now, 'breaker.opened', p_actor,
    jsonb_build_object('type', p_type, 'why', p_why, 'probe_at', v_probe_at) || p_data
  );
  perform treadle.notify_promoter(v_probe_at);
end;
$$;

create or replace function treadle.trip_breaker(
  p_type     text,
  p_seconds  double precision default null,
  p_reason   text default null,
  p_actor    text default null
)
returns timestamptz
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now     timestamptz := treadle.clock();
  v_seconds double precision;
begin
  perform treadle.check_names('default', p_type);
  if not coalesce(p_seconds between 0.001 and 31536000, true) then
    perform treadle.raise_error(
      format('a breaker cannot be open for %s seconds', p_seconds),
      jsonb_build_object('argument', 'seconds'), 'Pass more than 0 seconds and at most a year.'
    );
  end if;
  v_seconds := coalesce(p_seconds, (treadle.breaker_settings(p_type)).first_probe_s);
  insert into treadle.breakers (type) values (p_type) on conflict (type) do nothing;
  perform treadle.open_breaker(
    p_type, v_seconds, 'tripped', coalesce(p_actor, session_user), v_now,
    jsonb_build_object('reason', left(p_reason, 500))
  );
  update treadle.breakers
  set failures = 0, last_error = left(coalesce(p_reason, 'opened manually'), 500)
  where breakers.type = p_type;
  return v_now + make_interval(secs => v_seconds);
end;
$$;

comment on function treadle.trip_breaker(text, double precision, text, text) is
'Open the breaker of a type; returns when its probe is due.';

grant execute on function treadle.trip_breaker(text, double precision, text, text)
to treadle_operator;
