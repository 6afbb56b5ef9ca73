-- resolve_inputs: return the spec of a task with its inputs filled in from the outputs of other
-- tasks.
--
-- A problem is returned as a sentence and not raised, because it must not stop the claim of other
-- tasks.
--
-- Concurrency: reads only; outputs do not change once their task has ended.

-- resolve_reference: return the value of task:<id>:output, task:<id>:output.key.0,
-- task:<id>:artifact:<name> or artifact:<id>.
--
-- A task that the dependent continued without has the value null. problem says why there is no
-- value.
create or replace function treadle.resolve_reference(
  p_task       uuid,
  p_reference  text,
  out value jsonb,
  out problem text
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_id     constant text := '([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})';
  v_file   treadle.artifacts;
  v_parts  text[] := regexp_match(
    p_reference, '^task:' || c_id || ':(?:output((?:\.[^.]+)*)|artifact:(.+))$'
  );
  v_path   text[] := string_to_array(ltrim(v_parts[2], '.'), '.');
  v_status text;
begin
  if v_parts is null then
    v_parts := regexp_match(p_reference, '^artifact:' || c_id || '$');
    if v_parts is null then
      problem := 'it is not task:<id>:output, task:<id>:output.key, task:<id>:artifact:<name> '
        || 'or artifact:<id>';
      return;
    end if;
    v_file := treadle.find_artifact(v_parts[1]::uuid, null, null);
    if v_file.id is null then
      problem := 'there is no such artifact';
    else
      value := treadle.artifact_value(v_file);
    end if;
    return;
  end if;

  select tasks.status, coalesce(tasks.output, 'null')
  into v_status, value
  from treadle.tasks
  where tasks.id = v_parts[1]::uuid;
  if not found then
    problem := 'there is no such task';
  elsif v_status = 'completed' and v_parts[3] is not null then
    v_file := treadle.find_artifact(null, v_parts[1]::uuid, v_parts[3]);
    value := case when v_file.id is not null then treadle.artifact_value(v_file) end;
    if value is null then
      problem := format('the task has no artifact %s', left(v_parts[3], 100));
    end if;
  elsif v_status = 'completed' then
    value := value #> v_path;
    if value is null then
      problem := format('the output has no %s', array_to_string(v_path, '.'));
    end if;
  elsif exists (
    select from treadle.dependencies
    where
      dependencies.task_id = p_task
      and dependencies.depends_on = v_parts[1]::uuid
      and dependencies.optional
      and (v_status in ('cancelled', 'dead_lettered') or dependencies.met_at is not null)
  ) then
    value := 'null';
  else
    value := null;
    problem := format('the task is %s, not completed', v_status);
  end if;
end;
$$;

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
    problem := 'the inputs of the task are not a JSON object';
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
