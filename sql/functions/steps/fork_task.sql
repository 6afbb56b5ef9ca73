-- fork_task: create a new task that starts from a step of another task and keeps the steps before
-- it.
--
-- select treadle.fork_task(id, 'draft', '{"spec": {"tone": "dry"}}');
--
-- The original task is not changed, whatever its state. A changed argument is no longer taken from
-- another task's output.
--
-- Concurrency: steps never change; the task is locked so that it is not pruned in the meantime.
-- Lock order:  tasks (that one), lanes, tasks, steps, dependencies (new rows only).
-- Raises:      TR001 invalid argument, TR002 too large, TR201 task not found, TR202 unknown queue,
--              TR203 unknown type, TR207 step not found.

-- find_step: return the number of a step of a task; an error that names its steps if there is none.
--
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
  perform treadle.raise_error(
    format('task %s has no step %L', p_task, left(p_name, 60)),
    jsonb_build_object('task_id', p_task, 'step', p_name, 'steps', to_jsonb(v_names)),
    case
      when v_names = '{}' then 'It has no steps.'
      else format('Its steps: %s', array_to_string(v_names, ', '))
    end,
    'TR207'
  );
  return null;
end;
$$;

create or replace function treadle.fork_task(
  p_id       uuid,
  p_from     text,
  p_changes  jsonb default '{}',
  p_actor    text default null
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_now     timestamptz := treadle.clock();
  v_actor   text := coalesce(p_actor, session_user);
  v_changes jsonb := coalesce(p_changes, '{}');
  v_task    treadle.tasks;
  v_rest    treadle.task_options;
  v_new     treadle.tasks;
  v_kind    record;
  v_spec    jsonb;
  v_seq     integer;
  v_id      uuid;
begin
  perform treadle.check_step(p_from);
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id for key share;
  if not found then
    perform treadle.raise_invalid_transition(p_id, 'ready');
  end if;
  v_seq := treadle.find_step(p_id, p_from);
  perform treadle.check_options(v_changes, 'edit', '{set,unset}');
  perform treadle.ensure_durable();

  -- Fields that belong to the run of the task itself are not copied.
  v_new := v_task;
  v_new.created_by := v_actor;
  v_new.parent_id := null;
  v_new.dag_id := null;
  v_new.critical_path := 0;
  v_new.run_at := null;
  v_new.delayed_at := null;
  v_new.max_attempts := v_task.max_attempts - v_task.earlier_attempts;
  v_spec := treadle.edit_spec(v_task.spec, v_changes);
  v_new.inputs := nullif(v_task.inputs - treadle.edited_arguments(v_changes), '{}');
  v_rest := treadle.options_of(v_task);
  v_rest.forked_from := p_id;
  v_kind := treadle.prepare_task(v_changes, 'edit', v_now, v_new, v_rest);
  select made.id
  into v_id
  from treadle.store_tasks(
    array[v_kind.task], array[v_kind.rest], array[v_spec]
  ) as made;
  update treadle.tasks set durable = true where tasks.id = v_id and v_seq > 1;

  insert into treadle.steps (
    task_id, name, seq, kind, input_hash, input, output, attempt, agent_id, started_at, saved_at
  )
  select
    v_id, steps.name, steps.seq, steps.kind, steps.input_hash, steps.input, steps.output, 0,
    steps.agent_id, steps.started_at, steps.saved_at
  from treadle.steps
  where steps.task_id = p_id and steps.seq < v_seq;
  -- Dependencies that the task continued without are also optional for the fork.
  insert into treadle.dependencies (task_id, depends_on, optional, on_dead_letter, met_at)
  select v_id, dependencies.depends_on, true, dependencies.on_dead_letter, v_now
  from treadle.dependencies
  where
    dependencies.task_id = p_id and dependencies.optional and dependencies.met_at is not null;

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    v_now, 'task.forked', v_id, tasks.queue, v_actor,
    jsonb_build_object('from', p_id, 'step', p_from, 'kept', v_seq - 1, 'changes', v_changes)
  from treadle.tasks
  where tasks.id = v_id;
  return v_id;
end;
$$;

comment on function treadle.fork_task(uuid, text, jsonb, text) is
'Create a task from another one, with its steps before p_from and with changes.';

grant execute on function treadle.fork_task(uuid, text, jsonb, text) to
treadle_producer, treadle_operator;
