-- resolve_reference: what task:<id>:output, task:<id>:output.key.0, task:<id>:artifact:<name> or
-- artifact:<id> stands for.
--
-- A task that the dependent went on without stands for null.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing; problem says why there is no value.

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

comment on function treadle.resolve_reference(uuid, text) is
'Internal: the value of a reference in the inputs of a task, or the reason why there is none.';

revoke all on function treadle.resolve_reference(uuid, text) from public;
