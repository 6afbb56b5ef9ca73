-- slowdown_s: for how long a gate closes that was closed so many times in a row.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.slowdown_s(p_times integer)
returns double precision
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select least(60 * power(2::float8, least(greatest(p_times, 1), 30) - 1), 3600)
    * (1 + 0.1 * random())
$$;

comment on function treadle.slowdown_s(integer) is
'Internal: a minute, doubled each time up to an hour, and up to a tenth more.';

revoke all on function treadle.slowdown_s(integer) from public;
