-- is_moment: whether a time is one that every client can read, in whatever zone.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing; null for null.

create or replace function treadle.is_moment(p_at timestamptz)
returns boolean
language sql
immutable
parallel safe
return (
  p_at >= timestamptz '1970-01-01 00:00:00+00'
  and p_at <= timestamptz '9999-12-31 00:00:00+00'
);

comment on function treadle.is_moment(timestamptz) is
'Internal: from 1970 to 9999.';

revoke all on function treadle.is_moment(timestamptz) from public;
