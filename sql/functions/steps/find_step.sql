-- find_step: the number of a step of a task; an error that names its steps when it has none such.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR207 step not found.

create or replace function treadle.find_step(p_task uuid, p_name text)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_seq   integer;
  v_names text[];
begin
  select steps.seq
  into v_seq
  from treadle.steps
  where steps.task_id = p_task and steps.name = p_name;
  if found then
    return v_seq;
  end if;

  v_names := array(
    select steps.name from treadle.steps where steps.task_id = p_task order by steps.seq limit 20
  );
  perform treadle.refuse(
    format('task %s has no step %L', p_task, left(p_name, 60)),
    jsonb_build_object('task_id', p_task, 'step', p_name, 'steps', to_jsonb(v_names)),
    case
      when v_names = '{}' then 'It has none.'
      else format('It has: %s', array_to_string(v_names, ', '))
    end,
    'TR207'
  );
  return null;
end;
$$;

comment on function treadle.find_step(uuid, text) is
'Internal: the number of a step, by its name.';

revoke all on function treadle.find_step(uuid, text) from public;
