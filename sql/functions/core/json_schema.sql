-- json_schema: check answers with a JSON schema, and check the schema itself.
--
-- A small part of JSON Schema is supported, without $ref: clients replace each $ref with its
-- definition. Answers are checked here because they also come from psql (ADR 30).

-- value_problem: return how a value violates a JSON schema, ignoring its members and items.
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

-- answer_problem: return how an answer violates a JSON schema; null if it is valid.
create or replace function treadle.answer_problem(p_schema jsonb, p_value jsonb, p_path text)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kind    text := jsonb_typeof(p_value);
  v_problem text := treadle.value_problem(p_schema, p_value, p_path);
  v_others  text[];
begin
  if p_schema = 'false' then
    return p_path || ' is not allowed';
  end if;

  if v_problem is null and p_schema ? 'anyOf' then
    select array_agg(treadle.answer_problem(choices.value, p_value, p_path) order by choices.at)
    into v_others
    from jsonb_array_elements(p_schema -> 'anyOf') with ordinality as choices (value, at);
    if array_position(v_others, null) is null then
      v_problem := array_to_string(v_others, ', or ');
    end if;
  end if;

  if v_problem is null and v_kind = 'object' then
    select p_path || '.' || required.name || ' is missing'
    into v_problem
    from jsonb_array_elements_text(p_schema -> 'required') as required (name)
    where not p_value ? required.name
    limit 1;
  end if;

  if v_problem is null then
    select found.problem
    into v_problem
    from (
      select
        '.' || treadle.excerpt_name(members.key) as place,
        members.value,
        coalesce(
          p_schema -> 'properties' -> members.key, p_schema -> 'additionalProperties', 'true'
        ) as schema
      from jsonb_each(case when v_kind = 'object' then p_value end) as members
      union all
      select
        '[' || (items.at - 1) || ']',
        items.value,
        p_schema -> 'items'
      from jsonb_array_elements(case when v_kind = 'array' then p_value end)
      with ordinality as items (value, at)
      where p_schema ? 'items'
    ) as parts
    cross join lateral treadle.answer_problem(
      parts.schema, parts.value, p_path || parts.place
    ) as found (problem)
    where found.problem is not null
    limit 1;
  end if;
  return v_problem;
end;
$$;

-- keyword_fits: return whether a keyword of a JSON schema has a valid value.
--
-- Null for a keyword that is not supported. Subschemas are not checked here.
create or replace function treadle.keyword_fits(p_keyword text, p_value jsonb)
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
    when p_keyword = 'properties' then
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

-- subschemas: list the schemas inside a JSON schema, with their paths.
create or replace function treadle.subschemas(p_schema jsonb, p_path text)
returns table (path text, schema jsonb)
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select p_path || '.properties.' || part.key, part.value
  from jsonb_each(p_schema -> 'properties') as part
  union all
  select p_path || '.' || single.name, p_schema -> single.name
  from (values ('additionalProperties'), ('items')) as single (name)
  where p_schema ? single.name
  union all
  select p_path || '.anyOf[' || (part.at - 1) || ']', part.value
  from jsonb_array_elements(p_schema -> 'anyOf') with ordinality as part (value, at)
$$;

-- schema_problem: return what is wrong with a JSON schema; null if it is valid.
create or replace function treadle.schema_problem(p_schema jsonb, p_path text)
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
    case treadle.keyword_fits(v_keyword, v_value)
      when true then
        null;
      when false then
        return format('%s: %s cannot be %s', p_path, v_keyword, treadle.excerpt(v_value));
      else
        return format('%s has the keyword %s, which is not supported', p_path, left(v_keyword, 60));
    end case;
  end loop;

  for v_part in select parts.path, parts.schema from treadle.subschemas(p_schema, p_path) as parts
  loop
    v_problem := treadle.schema_problem(v_part.schema, v_part.path);
    exit when v_problem is not null;
  end loop;
  return v_problem;
end;
$$;

-- check_schema: reject a JSON schema that cannot be used to check answers.
--
-- A keyword that is not supported is rejected: otherwise answers would not be checked as expected.
--
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.check_schema(p_schema jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  perform treadle.check_document('schema', p_schema, 65536);
  if jsonb_typeof(p_schema) <> 'object' then
    v_problem := 'it must be a JSON object';
  else
    v_problem := treadle.schema_problem(p_schema, 'schema');
  end if;

  if v_problem is not null then
    perform treadle.raise_error(
      format('the schema of the answer cannot be used: %s', v_problem),
      jsonb_build_object('argument', 'schema', 'problem', v_problem),
      'Supported: type, enum, const, properties, required, additionalProperties, items, minItems, '
      'maxItems, minimum, maximum, minLength, maxLength, pattern and anyOf; title, description, '
      'default, examples and format are not checked. Replace each $ref with its definition.'
    );
  end if;
end;
$$;
