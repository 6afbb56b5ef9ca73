-- kinds_beside: the kinds of treadle that begin with the same noun as a name; none: it is free.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.kinds_beside(p_name text)
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select own.kind
    from unnest(treadle.own_kinds()) as own (kind)
    where starts_with(p_name, split_part(own.kind, '.', 1) || '.')
  )
$$;

comment on function treadle.kinds_beside(text) is
'Internal: the kinds of events that only treadle writes, of the noun of a name.';

revoke all on function treadle.kinds_beside(text) from public;
