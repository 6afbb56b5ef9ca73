-- resolve_inputs: the spec of a task with the outputs that it refers to filled in.
--
-- One that cannot be filled in is a sentence, not an error: it must not stop the claim of others.
--
-- Concurrency: reads; outputs do not change once their task has ended.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.resolve_inputs(
  p_task treadle.tasks,
  out spec jsonb,
  out problem text
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_bytes     constant bigint := 33554432;
  v_name      text;
  v_reference text;
  v_found     record;
  v_checked   record;
  v_bytes     bigint := 0;
  v_values    jsonb := '{}';
begin
  spec := p_task.spec;
  if p_task.inputs is null then
    return;
  end if;
  if jsonb_typeof(p_task.inputs) <> 'object' then
    problem := 'the inputs of the task are not a json object';
    return;
  end if;

  for v_name, v_reference in
    select given.key, given.value #>> '{}' from jsonb_each(p_task.inputs) as given
  loop
    v_found := treadle.resolve_reference(p_task.id, v_reference);
    v_checked := treadle.json_problem(v_found.value, c_bytes - v_bytes);
    v_bytes := v_bytes + v_checked.bytes;
    problem := coalesce(v_found.problem, 'its value ' || v_checked.problem);
    if problem is not null then
      problem := format(
        'input %L cannot be filled in from %L: %s',
        left(v_name, 100), left(v_reference, 300), problem
      );
      return;
    end if;
    v_values := v_values || jsonb_build_object(v_name, v_found.value);
  end loop;
  spec := p_task.spec || v_values;
end;
$$;

comment on function treadle.resolve_inputs(treadle.tasks) is
'Internal: spec and inputs of a task as the handler gets them, or why it cannot.';

revoke all on function treadle.resolve_inputs(treadle.tasks) from public;
