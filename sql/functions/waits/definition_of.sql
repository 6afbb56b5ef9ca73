-- definition_of: the name of the definition that a reference of a json schema means.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.definition_of(p_ref jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select replace(
    replace(substring(p_ref #>> '{}' from '^#/\$defs/([^/]+)$'), '~1', '/'), '~0', '~'
  )
$$;

comment on function treadle.definition_of(jsonb) is
'Internal: the name in a reference like #/$defs/name; null for any other.';

revoke all on function treadle.definition_of(jsonb) from public;
