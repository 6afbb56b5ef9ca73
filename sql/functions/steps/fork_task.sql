-- fork_task: start over from a step: a new task that has the steps before it, at no cost.
--
-- select treadle.fork_task(id, 'draft', '{"spec": {"tone": "dry"}}');
--
-- The task itself stays as it is, whatever its state. An argument that is changed is no longer
-- taken from another task's output.
--
-- Concurrency: steps never change; the task is held so that it is not pruned meanwhile.
-- Lock order:  tasks (that one), lanes, tasks, steps, dependencies (new rows only).
-- Raises:      TR001 invalid argument, TR002 too large, TR201 task not found, TR202 unknown queue,
--              TR203 unknown type, TR207 step not found.

-- fork_options: the options of a task as enqueue takes them, changed where asked.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.fork_options(
  p_task     treadle.tasks,
  p_changes  jsonb,
  p_actor    text
)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_changes constant text[] := array[
    'spec', 'queue', 'type', 'priority', 'max_attempts', 'timeout_s', 'ageing_rate',
    'capabilities', 'assigned_agent', 'retry', 'title', 'max_cost_usd'
  ];
begin
  perform treadle.check_settings(p_changes, c_changes);
  if p_changes ? 'spec' and jsonb_typeof(p_changes -> 'spec') <> 'object' then
    perform treadle.refuse(
      format('the spec must be a json object, not %s', jsonb_typeof(p_changes -> 'spec')),
      jsonb_build_object('argument', 'spec'),
      'Pass the arguments that change by name: {"prompt": "..."}.'
    );
  end if;

  return treadle.own_options(p_task)
  || jsonb_build_object(
    -- Every round that a person gave it has added to it.
    'max_attempts', least(p_task.max_attempts, 1000),
    'created_by', p_actor
  )
  || (p_changes - 'spec');
end;
$$;

-- find_step: the number of a step of a task; an error that names its steps when it has none such.
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
  v_seq     integer;
  v_options jsonb;
  v_id      uuid;
begin
  perform treadle.check_step(p_from);
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id for key share;
  if not found then
    perform treadle.refuse_transition(p_id, 'ready');
  end if;
  v_seq := treadle.find_step(p_id, p_from);
  v_options := treadle.fork_options(v_task, v_changes, v_actor);
  perform treadle.keep_durable();

  select made.id
  into v_id
  from treadle.insert_tasks(
    treadle.prepare_task(v_options, v_now),
    array[v_task.spec || coalesce(v_changes -> 'spec', '{}')]
  ) as made;
  update treadle.tasks
  set
    forked_from = p_id,
    durable = v_seq > 1,
    inputs = nullif(
      v_task.inputs - array(select jsonb_object_keys(coalesce(v_changes -> 'spec', '{}'))), '{}'
    )
  where tasks.id = v_id;

  insert into treadle.steps (
    task_id, name, seq, kind, input_hash, input, output, attempt, agent_id, started_at, saved_at
  )
  select
    v_id, steps.name, steps.seq, steps.kind, steps.input_hash, steps.input, steps.output, 0,
    steps.agent_id, steps.started_at, steps.saved_at
  from treadle.steps
  where steps.task_id = p_id and steps.seq < v_seq;
  -- What the task went on without, its fork goes on without.
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
'Make a new task from one of any state that keeps its steps before p_from, with changes.';

grant execute on function treadle.fork_task(uuid, text, jsonb, text) to
treadle_producer, treadle_operator;
