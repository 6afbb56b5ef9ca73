-- create_dag: store a DAG with all its tasks and edges, and let it run.
--
-- select * from treadle.create_dag('{
--   "name": "Build landing page",
--   "tasks": [
--     {"name": "research", "type": "research", "spec": {"topic": "competitors"}},
--     {"name": "build", "type": "code", "inputs": {"brief": "task:research:output"}},
--     {"name": "test", "type": "test", "after": ["build"]}
--   ]
-- }');
--
-- A dependency is the name of a task in the list, the id of any task, or an object:
-- {"task": "research", "optional": true}. With a key, a repeat returns the DAG that was made.
--
-- Concurrency: part of the caller's transaction: all of it is there, or nothing.
-- Lock order:  tasks, lanes, dags.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR103 cycle,
--              TR202 unknown queue, TR203 unknown type.

create or replace function treadle.create_dag(
  p_dag       jsonb,
  out dag_id  uuid,
  out created boolean,
  out ids     uuid[]
)
language plpgsql
volatile
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_tasks jsonb;
  v_made  record;
  v_home  treadle.tasks;
begin
  if jsonb_typeof(p_dag) is distinct from 'object' then
    perform treadle.refuse(
      'a DAG must be a json object',
      jsonb_build_object('argument', 'dag'),
      'For example {"name": "nightly", "tasks": [{"type": "code"}]}.'
    );
  end if;
  perform treadle.keep_durable();
  perform treadle.check_nodes(p_dag -> 'tasks');
  v_tasks := treadle.name_nodes(p_dag -> 'tasks', p_dag -> 'defaults');
  perform treadle.check_nodes(v_tasks);

  v_made := treadle.make_dag(
    p_dag ->> 'name', p_dag - array['name', 'tasks', 'defaults'], 'running',
    jsonb_array_length(v_tasks)
  );
  dag_id := (v_made.dag).id;
  created := v_made.created;
  if created then
    v_home.dag_id := dag_id;
    v_home.project_id := (v_made.dag).project_id;
    v_home.created_by := (v_made.dag).created_by;
    v_home.created_at := treadle.clock();
    ids := treadle.insert_nodes(v_tasks, v_home, (v_made.dag).on_dead_letter);
  else
    ids := array(
      select
        (
          select tasks.id
          from treadle.tasks
          where tasks.dag_id = (v_made.dag).id and tasks.name = nodes.task ->> 'name'
        )
      from jsonb_array_elements(v_tasks) with ordinality as nodes (task, at)
      order by nodes.at
    );
  end if;
end;
$$;

comment on function treadle.create_dag(jsonb) is
'Make a DAG of tasks in one go; returns its id and those of the tasks, in order.';

revoke all on function treadle.create_dag(jsonb) from public;
grant execute on function treadle.create_dag(jsonb) to treadle_producer, treadle_worker;
