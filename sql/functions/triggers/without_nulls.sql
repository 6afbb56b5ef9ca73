-- without_nulls: an object without those of its own keys that have no value.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.without_nulls(p_object jsonb)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(part.key, part.value), '{}')
  from jsonb_each(p_object) as part
  where part.value <> 'null'
$$;

comment on function treadle.without_nulls(jsonb) is
'Internal: an object without keys that are null; what is below stays.';

revoke all on function treadle.without_nulls(jsonb) from public;
