-- subschemas: the schemas inside of a json schema, and where they are.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.subschemas(p_schema jsonb, p_path text)
returns table (path text, schema jsonb)
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select p_path || '.' || groups.name || '.' || part.key, part.value
  from (values ('properties'), ('$defs')) as groups (name)
  cross join jsonb_each(p_schema -> groups.name) as part
  union all
  select p_path || '.' || single.name, p_schema -> single.name
  from (values ('additionalProperties'), ('items')) as single (name)
  where p_schema ? single.name
  union all
  select p_path || '.anyOf[' || (part.at - 1) || ']', part.value
  from jsonb_array_elements(p_schema -> 'anyOf') with ordinality as part (value, at)
$$;

comment on function treadle.subschemas(jsonb, text) is
'Internal: the parts of a json schema that are schemas themselves.';

revoke all on function treadle.subschemas(jsonb, text) from public;
