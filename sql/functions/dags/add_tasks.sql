-- add_tasks: add tasks to a DAG that has not ended.
--
-- They are held while the DAG is open; otherwise they are released once their dependencies are met.
-- A name that the DAG already has returns the existing task, so a repeated call adds nothing. So
-- does an idempotency key that another task has; that task does not join the DAG.
--
-- Concurrency: the DAG is locked; of two calls with the same name the second gets the task of the
-- first.
-- Lock order:  tasks, lanes, dags.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR103 cycle,
--              TR202 unknown queue, TR203 unknown type, TR205 unknown DAG.

-- count_new_dag_tasks: add new tasks to the counters of a DAG; an error if it does not exist or has
-- ended.
--
-- Concurrency: the DAG stays locked until the transaction ends: callers add tasks one after
-- another, and it cannot start or end in the meantime.
-- Lock order:  dags.
-- Raises:      TR102 illegal transition, TR205 unknown DAG.
create or replace function treadle.count_new_dag_tasks(p_dag uuid, p_tasks integer)
returns treadle.dags
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dag treadle.dags;
begin
  update treadle.dags
  set tasks = dags.tasks + p_tasks
  where dags.id = p_dag
  returning dags.* into v_dag;
  if not found then
    perform treadle.raise_dag_not_found(p_dag);
  end if;
  if v_dag.ended_at is not null then
    perform treadle.raise_error(
      format('DAG %s is %s, and no tasks can be added', p_dag, v_dag.status),
      jsonb_build_object('dag_id', p_dag, 'status', v_dag.status),
      'Create a new DAG; its tasks may depend on tasks of this one by id.',
      'TR102'
    );
  end if;
  return v_dag;
end;
$$;

create or replace function treadle.add_tasks(p_dag uuid, p_tasks jsonb)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_dag     treadle.dags;
  v_home    treadle.tasks;
  v_old     uuid[];
  v_todo    jsonb;
  v_ids     uuid[];
  v_created boolean[];
begin
  perform treadle.ensure_durable();
  perform treadle.check_nodes(p_tasks);
  v_home.dag_id := p_dag;
  v_home.created_by := session_user;
  v_home.project_id := (select dags.project_id from treadle.dags where dags.id = p_dag);
  -- In the lock order: tasks, lanes, then the DAG.
  perform treadle.lock_references(p_tasks, p_dag, v_home.project_id, '{}');
  v_home.created_at := treadle.clock();
  perform treadle.prepare_nodes(p_tasks, v_home);
  select dags.* into v_dag from treadle.dags where dags.id = p_dag for no key update;
  if not found then
    perform treadle.raise_dag_not_found(p_dag);
  end if;
  v_old := array(
    select
      (
        select tasks.id
        from treadle.tasks
        where tasks.dag_id = p_dag and tasks.name = nodes.task ->> 'name'
      )
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    order by nodes.at
  );
  v_todo := (
    select jsonb_agg(nodes.task order by nodes.at)
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    where v_old[nodes.at] is null
  );

  if v_todo is not null then
    perform treadle.count_new_dag_tasks(p_dag, jsonb_array_length(v_todo));
    v_home.created_at := treadle.clock();
    v_home.status := case when v_dag.status = 'open' then 'created' end;
    select made.ids, made.created
    into v_ids, v_created
    from treadle.insert_nodes(v_todo, v_home, v_dag.on_dead_letter) as made;
  end if;

  return query
  select coalesce(given.old, added.id), coalesce(added.created, false)
  from (
    select
      old.id as old, old.at, count(*) filter (where old.id is null) over (order by old.at) as nth
    from unnest(v_old) with ordinality as old (id, at)
  ) as given
  left join unnest(v_ids, v_created) with ordinality as added (id, created, nth)
    on given.nth = added.nth and given.old is null
  order by given.at;
end;
$$;

comment on function treadle.add_tasks(uuid, jsonb) is
'Add tasks with their dependencies to a DAG; returns one id for each, in order.';

-- add_task: add one task to a DAG that has not ended.
--
-- select treadle.add_task(dag, '{"name": "test", "type": "test", "after": ["build"]}');
--
-- Concurrency: see add_tasks.
-- Lock order:  tasks, lanes, dags.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR103 cycle,
--              TR202 unknown queue, TR203 unknown type, TR205 unknown DAG.
create or replace function treadle.add_task(p_dag uuid, p_task jsonb)
returns uuid
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select added.id from treadle.add_tasks(p_dag, jsonb_build_array(p_task)) as added
$$;

comment on function treadle.add_task(uuid, jsonb) is
'Add a task with its dependencies to a DAG.';

grant execute on function treadle.add_tasks(uuid, jsonb) to treadle_producer, treadle_worker;
grant execute on function treadle.add_task(uuid, jsonb) to treadle_producer, treadle_worker;
