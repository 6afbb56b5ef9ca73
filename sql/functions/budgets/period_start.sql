-- period_start: when the hour, day, week or month of a moment began, by the calendar of UTC.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.period_start(p_period text, p_at timestamptz)
returns timestamptz
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select date_trunc(p_period, p_at, 'UTC')
$$;

comment on function treadle.period_start(text, timestamptz) is
'Internal: the first moment of the period; empty without one.';

revoke all on function treadle.period_start(text, timestamptz) from public;
