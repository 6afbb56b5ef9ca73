-- stamp: a moment for programs: RFC 3339 in UTC, whatever the zone of the session is.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.stamp(p_at timestamptz)
returns text
language sql
stable
parallel safe
return pg_catalog.to_char(
  pg_catalog.date_trunc('milliseconds', p_at at time zone 'UTC'),
  'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'
);

comment on function treadle.stamp(timestamptz) is 'Internal: a moment to the millisecond, in UTC.';

revoke all on function treadle.stamp(timestamptz) from public;
