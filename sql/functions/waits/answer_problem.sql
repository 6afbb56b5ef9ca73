-- answer_problem: what a json schema has against an answer; null when it fits.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.answer_problem(jsonb, jsonb, jsonb, text) is
'Internal: why a value does not fit a json schema.';

revoke all on function treadle.answer_problem(jsonb, jsonb, jsonb, text) from public;
