-- utc_words: a moment for people, in UTC whatever the zone of the session is.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.utc_words(p_at timestamptz)
returns text
language sql
stable
parallel safe
return pg_catalog.to_char(
  pg_catalog.date_trunc('second', p_at at time zone 'UTC'), 'YYYY-MM-DD HH24:MI:SS "UTC"'
);

comment on function treadle.utc_words(timestamptz) is 'Internal: a moment to the second, in UTC.';

revoke all on function treadle.utc_words(timestamptz) from public;
grant execute on function treadle.utc_words(timestamptz) to treadle_observer, treadle_operator;
