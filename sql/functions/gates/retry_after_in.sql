-- retry_after_in: the seconds that a text asks to wait; null when it does not say.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.retry_after_in(p_text text)
returns double precision
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select found.parts[1]::float8 * case
    when found.parts[2] ~* '^(ms|milli)' then 0.001
    when found.parts[2] ~* '^m' then 60
    when found.parts[2] ~* '^h' then 3600
    else 1
  end
  from regexp_match(
    left(p_text, 20000),
    '(?:retry[-_ ]?after|(?:try|retry) again in)["'']?\s*[:=]?\s*["'']?'
    '([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(ms|milli[a-z]*|min[a-z]*|m\M|h\M|hours?)?',
    'i'
  ) as found (parts)
$$;

comment on function treadle.retry_after_in(text) is
'Internal: reads retry-after: 30, retry after 2 minutes, try again in 1.5s.';

revoke all on function treadle.retry_after_in(text) from public;
