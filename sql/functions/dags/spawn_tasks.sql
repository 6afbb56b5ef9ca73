-- spawn_tasks: start tasks from a running task, in its DAG and as its children.
--
-- They are saved as a step under p_name: the next attempt gets the same tasks and starts none.
--
-- Concurrency: the claim token is checked; the task is locked, so its DAG cannot end in the
-- meantime.
-- Lock order:  tasks, lanes, dags, locks, then the rest.
-- Raises:      TR001 invalid argument, TR002 too large, TR101 claim lost, TR102 illegal
--              transition, TR103 cycle, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.spawn_tasks(
  p_id     uuid,
  p_token  uuid,
  p_name   text,
  p_tasks  jsonb
)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_task   treadle.tasks;
  v_home   treadle.tasks;
  v_policy text := 'wait';
  v_ids    uuid[];
  v_made   record;
begin
  perform treadle.check_nodes(p_tasks);
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id;
  perform treadle.lock_references(
    p_tasks, v_task.dag_id, v_task.project_id, array[p_id]
  );
  v_task := treadle.lock_claim(p_id, p_token);
  select array(select jsonb_array_elements_text(steps.output -> 'ids'))::uuid[]
  into v_ids
  from treadle.steps
  where steps.task_id = p_id and steps.name = p_name;
  if found then
    return query select known.id, false from unnest(v_ids) as known (id);
    return;
  end if;

  v_home.parent_id := p_id;
  v_home.dag_id := v_task.dag_id;
  v_home.project_id := v_task.project_id;
  v_home.created_by := v_task.agent_id;
  v_home.created_at := treadle.clock();
  if v_task.dag_id is not null then
    select dags.on_dead_letter into v_policy from treadle.dags where dags.id = v_task.dag_id;
    -- In the lock order: lanes, the DAG, then the depth of a queue.
    perform treadle.prepare_nodes(p_tasks, v_home);
    perform treadle.count_new_dag_tasks(v_task.dag_id, jsonb_array_length(p_tasks));
  end if;
  v_made := treadle.insert_nodes(p_tasks, v_home, v_policy);
  perform treadle.store_step(
    p_id, p_name, 'spawn', jsonb_build_object('ids', v_made.ids), v_task.attempt, v_task.agent_id,
    p_token
  );
  return query
  select made.id, made.created from unnest(v_made.ids, v_made.created) as made (id, created);
end;
$$;

comment on function treadle.spawn_tasks(uuid, uuid, text, jsonb) is
'Start tasks from a running task, once; returns one id for each, in order.';

grant execute on function treadle.spawn_tasks(uuid, uuid, text, jsonb) to treadle_worker;
