-- keyword_fits: whether a keyword of a json schema has a value that it can have.
--
-- Null for a keyword that is not known. What is inside of subschemas is not looked at.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.keyword_fits(p_keyword text, p_value jsonb, p_root jsonb)
returns boolean
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_types constant jsonb :=
    '["null", "boolean", "object", "array", "number", "string", "integer"]';
  v_kind text := jsonb_typeof(p_value);
begin
  case
    when p_keyword in ('title', 'description', 'default', 'examples', 'format', 'const') then
      return true;
    when p_keyword = 'type' then
      return v_kind in ('string', 'array') and p_value <> '[]' and p_value <@ c_types;
    when p_keyword = 'enum' then
      return v_kind = 'array' and p_value <> '[]';
    when p_keyword in ('properties', '$defs') then
      return v_kind = 'object';
    when p_keyword = 'required' then
      return v_kind = 'array'
        and not jsonb_path_exists(p_value, 'strict $[*] ? (@.type() <> "string")');
    when p_keyword in ('additionalProperties', 'items') then
      return v_kind in ('object', 'boolean');
    when p_keyword = 'anyOf' then
      return v_kind = 'array' and p_value <> '[]';
    when p_keyword in ('minimum', 'maximum') then
      return v_kind = 'number';
    when p_keyword in ('minItems', 'maxItems', 'minLength', 'maxLength') then
      return v_kind = 'number' and p_value >= '0' and p_value <= '1000000000';
    when p_keyword = '$ref' then
      return coalesce(p_root -> '$defs' ? treadle.definition_of(p_value), false);
    when p_keyword = 'pattern' then
      return v_kind = 'string' and regexp_count('', p_value #>> '{}') >= 0;
    else
      return null;
  end case;
exception
  when invalid_regular_expression then
    return false;
end;
$$;

comment on function treadle.keyword_fits(text, jsonb, jsonb) is
'Internal: judges one keyword of a json schema.';

revoke all on function treadle.keyword_fits(text, jsonb, jsonb) from public;
