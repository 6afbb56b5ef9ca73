-- value_problem: what a json schema has against a value, apart from what is inside of it.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.value_problem(p_schema jsonb, p_value jsonb, p_path text)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  s        constant jsonb := p_schema;
  v_kind   text := jsonb_typeof(p_value);
  v_number numeric := case when v_kind = 'number' then p_value::numeric end;
  v_text   text := case when v_kind = 'string' then p_value #>> '{}' end;
  v_items  integer := case when v_kind = 'array' then jsonb_array_length(p_value) end;
  -- An array, also when one type was given as text.
  v_types  jsonb := '[]' || (s -> 'type');
  v_must   text;
begin
  if v_types ? 'integer' and v_number = trunc(v_number) then
    v_kind := 'integer';
  end if;

  select rules.must
  into v_must
  from (
    values
    (not v_types ? v_kind, 'be of type ' || array_to_string(array(
      select types.name from jsonb_array_elements_text(v_types) as types (name)
    ), ' or ')),
    (s ? 'const' and s -> 'const' <> p_value, 'be ' || (s -> 'const')::text),
    (s ? 'enum' and not exists (
      select from jsonb_array_elements(s -> 'enum') as allowed (value)
      where allowed.value = p_value
    ), 'be one of ' || (s -> 'enum')::text),
    (v_number < (s -> 'minimum')::numeric, 'be at least ' || (s ->> 'minimum')),
    (v_number > (s -> 'maximum')::numeric, 'be at most ' || (s ->> 'maximum')),
    (
      char_length(v_text) < (s -> 'minLength')::numeric,
      'have at least ' || (s ->> 'minLength') || ' characters'
    ),
    (
      char_length(v_text) > (s -> 'maxLength')::numeric,
      'have at most ' || (s ->> 'maxLength') || ' characters'
    ),
    (v_text !~ (s ->> 'pattern'), 'match ' || (s ->> 'pattern')),
    (v_items < (s -> 'minItems')::numeric, 'have at least ' || (s ->> 'minItems') || ' items'),
    (v_items > (s -> 'maxItems')::numeric, 'have at most ' || (s ->> 'maxItems') || ' items')
  ) as rules (broken, must)
  -- A rule that is not given, or that is about other types, is null and does not apply.
  where rules.broken
  limit 1;

  return p_path || ' must ' || v_must || ', not ' || treadle.excerpt(p_value);
end;
$$;

comment on function treadle.value_problem(jsonb, jsonb, text) is
'Internal: the first rule of a schema that a value breaks by itself.';

revoke all on function treadle.value_problem(jsonb, jsonb, text) from public;
