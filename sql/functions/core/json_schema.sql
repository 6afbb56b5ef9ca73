-- json_schema: check answers with a JSON schema, and check the schema itself.

-- definition_of: the name of the definition that a reference of a json schema means.
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

-- value_problem: what a json schema has against a value, apart from what is inside of it.
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

-- answer_problem: what a json schema has against an answer; null when it fits.
create or replace function treadle.answer_problem(
  p_schema  jsonb,
  p_value   jsonb,
  p_root    jsonb,
  p_path    text
)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text := treadle.value_problem(p_schema, p_value, p_path);
  v_others  text[] := '{}';
  v_part    jsonb;
begin
  if p_schema = 'false' then
    return p_path || ' is not allowed';
  end if;

  if v_problem is null and p_schema ? '$ref' then
    v_problem := treadle.answer_problem(
      p_root -> '$defs' -> treadle.definition_of(p_schema -> '$ref'), p_value, p_root, p_path
    );
  end if;

  if v_problem is null and p_schema ? 'anyOf' then
    for v_part in select choices.value from jsonb_array_elements(p_schema -> 'anyOf') as choices
    loop
      v_problem := treadle.answer_problem(v_part, p_value, p_root, p_path);
      exit when v_problem is null;
      v_others := v_others || v_problem;
    end loop;
    if v_problem is not null then
      return array_to_string(v_others, ', or ');
    end if;
  end if;

  return case
    when v_problem is not null then v_problem
    when jsonb_typeof(p_value) = 'object'
      then treadle.object_problem(p_schema, p_value, p_root, p_path)
    when jsonb_typeof(p_value) = 'array' and p_schema ? 'items' then (
      select found.problem
      from jsonb_array_elements(p_value) with ordinality as items (value, at)
      cross join lateral treadle.answer_problem(
        p_schema -> 'items', items.value, p_root, p_path || '[' || (items.at - 1) || ']'
      ) as found (problem)
      where found.problem is not null
      limit 1
    )
  end;
end;
$$;

-- object_problem: what a json schema has against the members of an object.
create or replace function treadle.object_problem(
  p_schema  jsonb,
  p_value   jsonb,
  p_root    jsonb,
  p_path    text
)
returns text
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_known   jsonb := coalesce(p_schema -> 'properties', '{}');
  v_others  jsonb := coalesce(p_schema -> 'additionalProperties', 'true');
  v_member  record;
  v_problem text;
begin
  select p_path || '.' || required.name || ' is missing'
  into v_problem
  from jsonb_array_elements_text(p_schema -> 'required') as required (name)
  where not p_value ? required.name
  limit 1;
  if found then
    return v_problem;
  end if;

  for v_member in select members.key, members.value from jsonb_each(p_value) as members
  loop
    if v_others = 'false' and not v_known ? v_member.key then
      return format(
        '%s.%s is not allowed, only %s', p_path, treadle.excerpt_name(v_member.key), coalesce(
          (select string_agg(keys.name, ', ') from jsonb_object_keys(v_known) as keys (name)),
          'an empty object'
        )
      );
    end if;
    v_problem := treadle.answer_problem(
      coalesce(v_known -> v_member.key, v_others), v_member.value, p_root,
      p_path || '.' || treadle.excerpt_name(v_member.key)
    );
    exit when v_problem is not null;
  end loop;
  return v_problem;
end;
$$;

-- keyword_fits: whether a keyword of a json schema has a value that it can have.
--
-- Null for a keyword that is not known. What is inside of subschemas is not looked at.
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

-- subschemas: the schemas inside of a json schema, and where they are.
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

-- endless_definition: a definition of a json schema that refers to itself without end.
--
-- A tree whose children are trees ends with the value that is checked. A definition that means
-- itself in the same place, also by way of others, would be followed for ever.
create or replace function treadle.endless_definition(p_root jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  with recursive parts as (
    select definitions.key as name, definitions.value as part
    from jsonb_each(p_root -> '$defs') as definitions
    union all
    select parts.name, choices.value
    from parts
    cross join jsonb_array_elements(parts.part -> 'anyOf') as choices
  ),

  meant as (
    select parts.name, treadle.definition_of(parts.part -> '$ref') as other
    from parts
    where parts.part ? '$ref'
  ),

  reached as (
    select meant.name, meant.other from meant
    union
    select reached.name, meant.other
    from reached
    inner join meant on reached.other = meant.name
  )

  select reached.name from reached where reached.name = reached.other order by 1 limit 1
$$;

-- schema_problem: what is wrong with a json schema; null when nothing is.
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

-- check_schema: refuse a json schema that answers could not be checked with.
--
-- Known: type, enum, const, properties, required, additionalProperties, items, minItems, maxItems,
-- minimum, maximum, minLength, maxLength, pattern, anyOf, $ref to #/$defs. For people, and not
-- checked: title, description, default, examples, format. Any other keyword is refused: an answer
-- that looks checked and is not would be worse.
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
    v_problem := 'it must be a json object';
  else
    v_problem := coalesce(
      treadle.schema_problem(p_schema, p_schema, 'schema'),
      'definition ' || treadle.endless_definition(p_schema) || ' refers to itself without end'
    );
  end if;

  if v_problem is not null then
    perform treadle.refuse(
      format('the schema of the answer cannot be used: %s', v_problem),
      jsonb_build_object('argument', 'schema', 'problem', v_problem),
      'Keywords: type, enum, const, properties, required, additionalProperties, items, minItems, '
      'maxItems, minimum, maximum, minLength, maxLength, pattern, anyOf, $ref to #/$defs; title, '
      'description, default, examples and format are for people.'
    );
  end if;
end;
$$;
