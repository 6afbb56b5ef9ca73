-- dollars: an amount of money for people.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.dollars(p_usd numeric)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select '$' || case
    when p_usd = round(p_usd, 2) then round(p_usd, 2) else trim_scale(p_usd)
  end
$$;

comment on function treadle.dollars(numeric) is
'Internal: dollars with their cents, and more digits where there are some.';

revoke all on function treadle.dollars(numeric) from public;
