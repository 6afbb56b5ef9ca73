-- schema_problem: what is wrong with a json schema; null when nothing is.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.schema_problem(p_schema jsonb, p_root jsonb, p_path text)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keyword text;
  v_value   jsonb;
  v_part    record;
  v_problem text;
begin
  if jsonb_typeof(p_schema) = 'boolean' then
    return null;
  elsif jsonb_typeof(p_schema) is distinct from 'object' then
    return format('%s must be an object, not %s', p_path, treadle.excerpt(p_schema));
  end if;

  for v_keyword, v_value in select each.key, each.value from jsonb_each(p_schema) as each
  loop
    case treadle.keyword_fits(v_keyword, v_value, p_root)
      when true then
        -- References begin at the root, so nothing could mean it elsewhere.
        if v_keyword = '$defs' and p_path <> 'schema' then
          return format('%s has $defs, which belong at the root', p_path);
        end if;
      when false then
        return format('%s: %s cannot be %s', p_path, v_keyword, treadle.excerpt(v_value));
      else
        return format('%s has the keyword %s, which is not known', p_path, left(v_keyword, 60));
    end case;
  end loop;

  for v_part in select parts.path, parts.schema from treadle.subschemas(p_schema, p_path) as parts
  loop
    v_problem := treadle.schema_problem(v_part.schema, p_root, v_part.path);
    exit when v_problem is not null;
  end loop;
  return v_problem;
end;
$$;

comment on function treadle.schema_problem(jsonb, jsonb, text) is
'Internal: the first thing that is wrong with a json schema.';

revoke all on function treadle.schema_problem(jsonb, jsonb, text) from public;
