-- sorted: names in order and without repeats, so that the same names are the same array.
--
-- In plpgsql, which keeps its plan.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.sorted(p_names text[])
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(pg_catalog.cardinality(p_names), 0) = 0 then
    return '{}';
  end if;
  return array(select distinct names.name from unnest(p_names) as names (name) order by 1);
end;
$$;

comment on function treadle.sorted(text[]) is 'Internal: a set of names as an array.';

revoke all on function treadle.sorted(text[]) from public;
