-- breaker_settings: when the breaker of a type opens and how long it waits.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.breaker_settings(text) is
'Internal: failures in a row, seconds to the first probe, seconds after a failed one.';

revoke all on function treadle.breaker_settings(text) from public;
