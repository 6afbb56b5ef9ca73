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
-- {"task": "research", "optional": true}. With a key, a repeat returns the DAG that was made. With
-- "hold": true it waits for start_dag.
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
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_tasks jsonb;
  v_made  record;
  v_home  treadle.tasks;
  v_hold  boolean := coalesce(p_dag -> 'hold' = 'true', false);
begin
  if jsonb_typeof(p_dag) is distinct from 'object'
    or jsonb_typeof(p_dag -> 'hold') not in ('boolean', 'null') then
    perform treadle.refuse(
      'a DAG must be a json object, and its hold true or false',
      jsonb_build_object('argument', 'dag'),
      'For example {"name": "nightly", "tasks": [{"type": "code"}]}.'
    );
  end if;
  perform treadle.keep_durable();
  perform treadle.check_nodes(p_dag -> 'tasks');
  v_tasks := treadle.name_nodes(p_dag -> 'tasks', p_dag -> 'defaults');
  perform treadle.check_nodes(v_tasks);

  v_made := treadle.make_dag(
    p_dag ->> 'name', p_dag - array['name', 'tasks', 'defaults', 'hold'],
    case when v_hold then 'open' else 'running' end, jsonb_array_length(v_tasks)
  );
  dag_id := (v_made.dag).id;
  created := v_made.created;
  if created then
    v_home.dag_id := dag_id;
    v_home.project_id := (v_made.dag).project_id;
    v_home.created_by := (v_made.dag).created_by;
    v_home.created_at := treadle.clock();
    v_home.status := case when v_hold then 'created' end;
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
    if array_position(ids, null) is not null then
      perform treadle.refuse(
        format('the key belongs to DAG %s, which has other tasks', dag_id),
        jsonb_build_object('argument', 'key', 'dag_id', dag_id),
        'Another DAG needs another key.'
      );
    end if;
  end if;
end;
$$;

comment on function treadle.create_dag(jsonb) is
'Make a DAG of tasks in one go; returns its id and those of the tasks, in order.';

revoke all on function treadle.create_dag(jsonb) from public;
grant execute on function treadle.create_dag(jsonb) to treadle_producer, treadle_worker;
