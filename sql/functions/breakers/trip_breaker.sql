-- trip_breaker: open the breaker of a type by hand; its probe is due after so many seconds.
--
-- select treadle.trip_breaker('deploy', 600, 'the cluster is being moved');
--
-- Concurrency: a claim that is under way may still take its tasks.
-- Lock order:  breakers.
-- Raises:      TR001 invalid argument, TR203 unknown type.

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
    perform treadle.refuse(
      format('a breaker cannot be open for %s seconds', p_seconds),
      jsonb_build_object('argument', 'seconds'), 'Give seconds above 0, up to a year.'
    );
  end if;
  v_seconds := coalesce(p_seconds, (treadle.breaker_settings(p_type)).first_probe_s);
  insert into treadle.breakers (type) values (p_type) on conflict (type) do nothing;
  perform treadle.open_breaker(
    p_type, v_seconds, 'tripped', coalesce(p_actor, session_user), v_now,
    jsonb_build_object('reason', left(p_reason, 500))
  );
  update treadle.breakers
  set failures = 0, last_error = left(coalesce(p_reason, 'tripped by hand'), 500)
  where breakers.type = p_type;
  return v_now + make_interval(secs => v_seconds);
end;
$$;

comment on function treadle.trip_breaker(text, double precision, text, text) is
'Open the breaker of a type; returns when its probe is due.';

revoke all on function treadle.trip_breaker(text, double precision, text, text) from public;
grant execute on function treadle.trip_breaker(text, double precision, text, text)
to treadle_operator;
