-- create_dag: store a DAG with all its tasks and edges, and start it.
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
-- A dependency is the name of a task in the list, the id of any task, or an object: {"task":
-- "research", "optional": true}. With a key, a repeated call returns the existing DAG. With "hold":
-- true it waits for start_dag. A task whose idempotency_key another task has is that task, which
-- does not join the DAG; reused lists these.
--
-- Concurrency: part of the caller's transaction: either everything is stored or nothing.
-- Lock order:  tasks, lanes, dags.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR103 cycle,
--              TR202 unknown queue, TR203 unknown type.

-- make_dag: insert a DAG without tasks; if the key is in use, return the DAG that has it.
--
-- Concurrency: of two sessions with the same key, the second waits for the first and gets its DAG.
-- Lock order:  dags.
-- Raises:      TR001 invalid argument.
create or replace function treadle.make_dag(
  p_name     text,
  p_options  jsonb,
  p_status   text,
  p_tasks    integer,
  out dag    treadle.dags,
  out created boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.check_settings(
    p_options,
    array['key', 'on_dead_letter', 'budget_usd', 'project_id', 'created_by', 'meta']
  );
  begin
    dag := jsonb_populate_record(null::treadle.dags, p_options - 'key');
    dag.name := p_name;
    insert into treadle.dags (
      name, status, on_dead_letter, tasks, project_id, idempotency_key, created_by,
      started_at, meta
    )
    values (
      p_name, p_status, coalesce(dag.on_dead_letter, 'wait'), p_tasks, dag.project_id,
      p_options ->> 'key', coalesce(dag.created_by, session_user),
      case when p_status = 'running' then treadle.clock() end, coalesce(dag.meta, '{}')
    )
    on conflict (idempotency_key) where idempotency_key is not null do nothing
    returning dags.* into dag;
    created := found;
    if created and p_options ->> 'budget_usd' is not null then
      perform treadle.ensure_budget('dag', dag.id::text, (p_options ->> 'budget_usd')::numeric);
    end if;
  exception
    when data_exception or check_violation or not_null_violation then
      perform treadle.raise_error(
        format('this DAG cannot be created: %s', sqlerrm),
        jsonb_build_object('argument', 'dag'),
        'A DAG needs a name of 1 to 1000 bytes; on_dead_letter is wait, cancel or continue; '
        || 'budget_usd is 0 or more; a key has 1 to 200 bytes.'
      );
  end;

  if not created then
    select dags.* into dag from treadle.dags where dags.idempotency_key = p_options ->> 'key';
  end if;
end;
$$;

-- apply_node_defaults: apply the defaults to the tasks of a DAG, and name those that have no name.
--
-- The default name is the type; the second task of a type is `type-2`, and so on.
create or replace function treadle.apply_node_defaults(p_tasks jsonb, p_defaults jsonb)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_agg(
      case
        when named.task ->> 'name' is not null then named.task
        else named.task || jsonb_build_object(
          'name',
          case
            when named.nth > 1 then (named.task ->> 'type') || '-' || named.nth
            else named.task ->> 'type'
          end
        )
      end
      order by named.at
    )
  from (
    select
      given.at,
      coalesce(p_defaults, '{}') || given.task as task,
      row_number() over (
        partition by coalesce(p_defaults, '{}') || given.task ->> 'type' order by given.at
      ) as nth
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
  ) as named
$$;

create or replace function treadle.create_dag(
  p_dag       jsonb,
  out dag_id  uuid,
  out created boolean,
  out ids     uuid[],
  out reused  uuid[]
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
  v_nodes record;
  v_home  treadle.tasks;
  v_held  uuid[];
  v_hold  boolean := coalesce(p_dag -> 'hold' = 'true', false);
begin
  if jsonb_typeof(p_dag) is distinct from 'object'
    or jsonb_typeof(p_dag -> 'hold') not in ('boolean', 'null') then
    perform treadle.raise_error(
      'a DAG must be a JSON object, and hold must be true or false',
      jsonb_build_object('argument', 'dag'),
      'For example {"name": "nightly", "tasks": [{"type": "code"}]}.'
    );
  end if;
  perform treadle.ensure_durable();
  perform treadle.check_nodes(p_dag -> 'tasks');
  v_tasks := treadle.apply_node_defaults(p_dag -> 'tasks', p_dag -> 'defaults');
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
    v_nodes := treadle.insert_nodes(v_tasks, v_home, (v_made.dag).on_dead_letter);
    ids := v_nodes.ids;
    reused := array(
      select nodes.id
      from unnest(v_nodes.ids, v_nodes.created) as nodes (id, created)
      where not nodes.created
    );
    if cardinality(reused) = cardinality(ids) then
      perform treadle.raise_error(
        'all tasks of this DAG exist: each has the idempotency key of another task',
        jsonb_build_object('argument', 'tasks'),
        'Give the DAG a key: repeating the call then returns the existing DAG.'
      );
    end if;
    insert into treadle.events (kind, dag_id, actor, data)
    select
      'dag.started', dags.id, dags.created_by,
      jsonb_build_object('name', dags.name, 'tasks', dags.tasks)
    from treadle.dags
    where dags.id = (v_made.dag).id and not v_hold;
  else
    v_held := treadle.key_holders(v_tasks, (v_made.dag).project_id);
    ids := array(
      select
        coalesce(
          (
            select tasks.id
            from treadle.tasks
            where tasks.dag_id = (v_made.dag).id and tasks.name = nodes.task ->> 'name'
          ),
          v_held[nodes.at]
        )
      from jsonb_array_elements(v_tasks) with ordinality as nodes (task, at)
      order by nodes.at
    );
    if array_position(ids, null) is not null then
      perform treadle.raise_error(
        format('the key is used by DAG %s, which has different tasks', dag_id),
        jsonb_build_object('argument', 'key', 'dag_id', dag_id),
        'Use another key for another DAG.'
      );
    end if;
    reused := ids;
  end if;
end;
$$;

comment on function treadle.create_dag(jsonb) is
'Create a DAG with its tasks; returns its id and the ids of the tasks, in order.';

grant execute on function treadle.create_dag(jsonb) to treadle_producer, treadle_worker;
