-- run_moment: when the work of a nominal time may start: up to jitter_s later, always the same.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.run_moment(
  p_schedule  treadle.schedules,
  p_nominal   timestamptz
)
returns timestamptz
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    p_nominal + make_interval(
      secs => mod(
        hashtextextended(p_schedule.id::text, extract(epoch from p_nominal)::bigint)
        & 9223372036854775807,
        p_schedule.jitter_s * 1000
      ) / 1000.0
    )
  where p_schedule.jitter_s > 0
$$;

comment on function treadle.run_moment(treadle.schedules, timestamptz) is
'Internal: the nominal time with its jitter; empty without any.';

revoke all on function treadle.run_moment(treadle.schedules, timestamptz) from public;
