-- options_of: return the row of task_options of a task; all columns are null if it has none.

create or replace function treadle.options_of(p_task treadle.tasks)
returns treadle.task_options
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_options treadle.task_options;
begin
  if p_task.has_options then
    select task_options.*
    into v_options
    from treadle.task_options
    where task_options.task_id = p_task.id;
  end if;
  return v_options;
end;
$$;
