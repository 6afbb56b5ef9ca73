-- object_problem: what a json schema has against the members of an object.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.object_problem(jsonb, jsonb, jsonb, text) is
'Internal: the first member of an object that does not fit a json schema.';

revoke all on function treadle.object_problem(jsonb, jsonb, jsonb, text) from public;
