-- insert_nodes: insert tasks that depend on each other and on existing tasks.
--
-- p_base gives their DAG, parent and project, and whether they are held (`created`). p_use is node
-- for tasks of a DAG and subtasks, and task for those that enqueue_batch inserts. Where another
-- task holds the idempotency key, that task is returned and stays as it is; the other tasks of the
-- list depend on it.
--
-- Concurrency: part of the caller's transaction. Existing tasks that they depend on are locked, so
-- that none of them ends unnoticed. Of two sessions with the same key, the second waits for the
-- first and gets its task.
-- Lock order:  tasks, lanes.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR103 cycle,
--              TR202 unknown queue, TR203 unknown type.

-- resolve_input_names: replace names with ids in the inputs of a task.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.resolve_input_names(p_inputs jsonb, p_ids jsonb, p_dag uuid)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_object_agg(
      inputs.key,
      case
        when inputs.value not like 'task:%' then inputs.value
        else format(
          'task:%s:%s',
          coalesce(
            p_ids ->> split_part(inputs.value, ':', 2),
            treadle.find_referenced_task(split_part(inputs.value, ':', 2), p_dag)::text
          ),
          substr(inputs.value, length(split_part(inputs.value, ':', 2)) + 7)
        )
      end
    )
  from jsonb_each_text(p_inputs) as inputs
$$;

-- check_nodes: check that the tasks of a DAG are objects with valid and unique names.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_nodes(p_tasks jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_uuid constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  v_wrong record;
begin
  if jsonb_typeof(p_tasks) is distinct from 'array' or p_tasks = '[]' or jsonb_path_exists(
    p_tasks, '$[*] ? (@.type() != "object")'
  ) then
    perform treadle.raise_error(
      'tasks must be a JSON array of at least one object',
      jsonb_build_object('argument', 'tasks'),
      'For example [{"name": "a", "type": "code"}, {"name": "b", "type": "test", "after": ["a"]}].'
    );
  end if;

  select given.at - 1 as at, given.name, given.problem
  into v_wrong
  from (
    select
      nodes.at,
      nodes.task ->> 'name' as name,
      case
        when jsonb_typeof(nodes.task -> 'name') not in ('string', 'null')
          then 'a name must be text'
        when not nodes.task ->> 'name' ~ '^[^:[:cntrl:]]{1,100}$' or nodes.task ->> 'name' ~ c_uuid
          then 'a name must be 1 to 100 characters without a colon, and not a uuid'
        when
          nodes.task ->> 'name' is not null
          and count(*) over (partition by nodes.task ->> 'name') > 1
          then 'the name is used twice'
        when
          nodes.task ->> 'idempotency_key' is not null
          and count(*) over (partition by nodes.task ->> 'idempotency_key') > 1
          then 'the idempotency_key is used twice'
        when jsonb_typeof(nodes.task -> 'after') not in ('array', 'null')
          then 'after must be an array of names or ids'
        when jsonb_typeof(nodes.task -> 'inputs') not in ('object', 'null')
          then 'inputs must be an object: {"parameter": "task:<name>:output"}'
      end as problem
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
  ) as given
  where given.problem is not null
  order by given.at
  limit 1;

  if found then
    perform treadle.raise_error(
      format('task %s of the DAG: %s', coalesce(v_wrong.name, '#' || v_wrong.at), v_wrong.problem),
      jsonb_build_object('argument', 'tasks', 'index', v_wrong.at, 'name', v_wrong.name),
      'Nothing was stored. Correct the task and send the whole DAG again.'
    );
  end if;
end;
$$;

-- prepare_nodes: check and prepare the tasks of a list, grouped by kind.
--
-- p_base gives their DAG, parent and author, and the project of tasks that name none, since in a
-- fair queue a lane belongs to a project. If its status is created, so is theirs.
--
-- Concurrency: may create lanes, see find_lane.
-- Lock order:  lanes.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.
create or replace function treadle.prepare_nodes(
  p_tasks     jsonb,
  p_base      treadle.tasks,
  p_use       text default 'node',
  out kinds   treadle.tasks[],
  out rest    treadle.task_options[],
  out kind_of integer[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_own constant text[] := array[
    'name', 'title', 'spec', 'idempotency_key', 'after', 'inputs'
  ];
  v_kind   record;
  v_places bigint[] := '{}';
  v_kinds  integer[] := '{}';
  v_made   record;
  v_row    treadle.tasks;
  v_some   boolean := false;
begin
  kinds := '{}';
  rest := '{}';
  perform treadle.check_options(
    jsonb_build_object('idempotency_key', given.task -> 'idempotency_key'), p_use
  )
  from jsonb_array_elements(p_tasks) as given (task)
  where given.task ->> 'idempotency_key' is not null;
  for v_kind in
    select
      given.task - c_own as options,
      array_agg(given.at) as places,
      array_agg(coalesce(given.task -> 'spec', '{}') order by given.at) as specs,
      (array_agg(given.task -> 'title' order by length(given.task ->> 'title') desc nulls last))[1]
        as title
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
    group by given.task - c_own
    -- In the same order everywhere, so that two sessions creating the same lanes do not deadlock.
    order by given.task - c_own
  loop
    perform treadle.check_options(jsonb_build_object('title', v_kind.title), p_use)
    where v_kind.title is not null;
    v_row := null;
    v_row.parent_id := p_base.parent_id;
    v_row.dag_id := p_base.dag_id;
    v_row.created_by := p_base.created_by;
    if v_kind.options ->> 'project' is null then
      v_row.project_id := p_base.project_id;
    end if;
    v_made := treadle.prepare_task(v_kind.options, p_use, p_base.created_at, v_row);
    v_row := v_made.task;
    v_row.project_id := coalesce(v_row.project_id, p_base.project_id);
    if p_base.status = 'created' then
      v_row.status := 'created';
      v_row.slot := null;
    end if;
    perform treadle.check_specs(v_kind.specs, queues.max_spec_bytes)
    from treadle.queues
    where queues.name = v_row.queue;
    kinds := kinds || v_row;
    rest := rest || v_made.rest;
    v_some := v_some or v_row.has_options;
    v_places := v_places || v_kind.places;
    v_kinds := v_kinds
      || array_fill(cardinality(kinds), array[cardinality(v_kind.places)]);
  end loop;

  rest := case when v_some then rest end;
  kind_of := array(
    select found.kind from unnest(v_places, v_kinds) as found (place, kind) order by found.place
  );
end;
$$;

-- key_holders: return the task that holds the idempotency key of each new task, null if none does.
--
-- Returns null if no task of the list has a key. p_project is the project of tasks that name none.
create or replace function treadle.key_holders(p_tasks jsonb, p_project uuid)
returns uuid[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  if not jsonb_path_exists(p_tasks, '$[*].idempotency_key ? (@ != null)') then
    return null;
  end if;
  return array(
    select
      (
        select tasks.id
        from treadle.tasks
        where
          tasks.idempotency_key = nodes.task ->> 'idempotency_key'
          and tasks.project_id is not distinct from case
            when nodes.task ->> 'project' is not null
              then (
                select projects.id from treadle.projects
                where projects.name = nodes.task ->> 'project'
              )
            -- As PostgreSQL reads it; prepare_nodes rejects what is not a UUID.
            when translate(nodes.task ->> 'project_id', '{}-', '') ~ '^[0-9a-fA-F]{32}$'
              then translate(nodes.task ->> 'project_id', '{}-', '')::uuid
            else p_project
          end
          and tasks.status not in ('dead_lettered', 'cancelled')
        limit 1
      )
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    order by nodes.at
  );
end;
$$;

-- lock_references: lock the existing tasks that a list of new tasks refers to.
--
-- p_project is the project of tasks that name none; it is part of their idempotency keys.
-- p_extra_ids is locked with them, as one ordered set. Without any reference nothing is locked.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, by id.
-- Raises:      TR001 invalid argument.
create or replace function treadle.lock_references(
  p_tasks      jsonb,
  p_dag        uuid,
  p_project    uuid,
  p_extra_ids  uuid[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_ids uuid[] := array(
    select edges.depends_on
    from treadle.node_edges(
      p_tasks, array_fill(null::uuid, array[jsonb_array_length(p_tasks)]), p_dag
    ) as edges
    where edges.place is null
  ) || array(
    select tasks.id
    from treadle.tasks
    where
      tasks.dag_id = p_dag
      and tasks.name = any (
        array(select nodes.task ->> 'name' from jsonb_array_elements(p_tasks) as nodes (task))
      )
  ) || array_remove(treadle.key_holders(p_tasks, p_project), null);
begin
  if v_ids <> '{}' then
    perform treadle.lock_dependencies(v_ids || p_extra_ids);
  end if;
end;
$$;

-- try_insert_nodes: insert tasks once; see insert_nodes.
--
-- Raises TR999 if the holder of a key has changed in the meantime, for the caller to start again.
create or replace function treadle.try_insert_nodes(
  p_tasks      jsonb,
  p_base       treadle.tasks,
  p_policy     text,
  p_use        text,
  out ids      uuid[],
  out created  boolean[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held   uuid[] := treadle.key_holders(p_tasks, p_base.project_id);
  -- A task that exists keeps its own dependencies; those given here may be gone.
  v_tasks  jsonb := case
    when v_held is null then p_tasks
    else (
      select jsonb_agg(
        case
          when v_held[nodes.at] is null then nodes.task
          else nodes.task - array['after', 'inputs']
        end
        order by nodes.at
      )
      from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    )
  end;
  v_names  text[];
  v_named  jsonb;
  v_kinds  record;
  v_specs  jsonb[];
  v_keys   text[];
  v_kind   integer[];
  v_nodes  treadle.dag_node[];
  v_new    uuid[];
  v_at     integer[];
  v_on     uuid[];
  v_place  integer[];
  v_loose  boolean[];
  v_met    timestamptz[];
  v_paths  integer[];
begin
  select
    array_agg(coalesce(v_held[nodes.at], treadle.uuidv7()) order by nodes.at),
    array_agg(nodes.task ->> 'name' order by nodes.at),
    array_agg(v_held[nodes.at] is null order by nodes.at)
  into ids, v_names, created
  from jsonb_array_elements(v_tasks) with ordinality as nodes (task, at);
  v_named := (
    select jsonb_object_agg(nodes.name, nodes.id)
    from unnest(v_names, ids) as nodes (name, id)
    where nodes.name is not null
  );

  select
    array_agg(edges.at), array_agg(edges.depends_on), array_agg(edges.place),
    array_agg(edges.optional)
  into v_at, v_on, v_place, v_loose
  from treadle.node_edges(v_tasks, ids, p_base.dag_id) as edges;

  perform treadle.check_order(v_names, array_agg(edges.at), array_agg(edges.place))
  from unnest(v_at, v_place) as edges (at, place)
  where edges.place is not null
  having count(*) > 0;

  if v_held is not null then
    -- A task that exists is none of the new ones, and may be named by its id as well.
    select
      array_agg(edges.at), array_agg(edges.depends_on), array_agg(edges.place),
      array_agg(edges.optional)
    into v_at, v_on, v_place, v_loose
    from (
      select
        given.at, given.depends_on, bool_and(given.optional) as optional,
        case when v_held[given.place] is null then given.place end as place
      from unnest(v_at, v_on, v_place, v_loose) as given (at, depends_on, place, optional)
      group by given.at, given.depends_on, 4
    ) as edges;
  end if;

  perform treadle.lock_dependencies(array_agg(distinct others.id))
  from (
    select edges.depends_on as id
    from unnest(v_on, v_place) as edges (depends_on, place)
    where edges.place is null
    union all
    select held.id from unnest(v_held) as held (id) where held.id is not null
  ) as others
  having count(*) > 0;
  if v_held is not null
    and treadle.key_holders(p_tasks, p_base.project_id) is distinct from v_held then
    raise exception using errcode = 'TR999', message = 'a key has another task';
  end if;

  v_kinds := treadle.prepare_nodes(v_tasks, p_base, p_use);
  v_paths := treadle.chain_lengths(cardinality(ids), v_at, v_place);
  v_met := array(
    select
      case
        when edges.place is null
          then treadle.dependency_met_at(
            edges.depends_on, edges.optional, p_policy, p_base.created_at
          )
      end
    from unnest(v_on, v_place, v_loose) with ordinality as edges (depends_on, place, optional, at)
    order by edges.at
  );

  -- In the order of their keys, so that two sessions with the same keys do not deadlock.
  select
    array_agg(ids[nodes.at] order by nodes.key, nodes.at),
    array_agg(coalesce(nodes.task -> 'spec', '{}') order by nodes.key, nodes.at),
    case
      when v_held is not null then array_agg(nodes.key order by nodes.key, nodes.at)
    end,
    array_agg(v_kinds.kind_of[nodes.at] order by nodes.key, nodes.at),
    array_agg(
      row(
        nodes.task ->> 'name', nodes.task ->> 'title',
        case
          when jsonb_typeof(nodes.task -> 'inputs') = 'object' and nodes.task -> 'inputs' <> '{}'
            then treadle.resolve_input_names(nodes.task -> 'inputs', v_named, p_base.dag_id)
        end,
        coalesce(waits.unmet, 0), v_paths[nodes.at]
      )::treadle.dag_node
      order by nodes.key, nodes.at
    )
  into v_new, v_specs, v_keys, v_kind, v_nodes
  from (
    select given.at, given.task, given.task ->> 'idempotency_key' as key
    from jsonb_array_elements(v_tasks) with ordinality as given (task, at)
  ) as nodes
  left join (
    select edges.at, count(*)::integer as unmet
    from unnest(v_at, v_met) as edges (at, met_at)
    where edges.met_at is null
    group by edges.at
  ) as waits on nodes.at = waits.at
  where created[nodes.at];
  if exists (
    select from treadle.store_tasks(
      v_kinds.kinds, v_kinds.rest, v_specs, v_keys, v_new, v_kind, v_nodes
    ) as stored
    where not stored.created
  ) then
    raise exception using errcode = 'TR999', message = 'a key has another task';
  end if;
  insert into treadle.dependencies (task_id, depends_on, optional, on_dead_letter, met_at)
  select
    ids[edges.at], edges.depends_on, edges.optional,
    treadle.edge_policy(p_policy, edges.optional), edges.met_at
  from unnest(v_at, v_on, v_loose, v_met) as edges (at, depends_on, optional, met_at);
  perform treadle.extend_critical_paths(
    array_agg(edges.depends_on), array_agg(v_paths[edges.at] + 1)
  )
  from unnest(v_at, v_on, v_place, v_met) as edges (at, depends_on, place, met_at)
  where edges.place is null and edges.met_at is null
  having count(*) > 0;
end;
$$;

create or replace function treadle.insert_nodes(
  p_tasks      jsonb,
  p_base       treadle.tasks,
  p_policy     text,
  p_use        text default 'node',
  out ids      uuid[],
  out created  boolean[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_tries constant integer := 100;
  v_made record;
begin
  if treadle.key_holders(p_tasks, p_base.project_id) is null then
    v_made := treadle.try_insert_nodes(p_tasks, p_base, p_policy, p_use);
  else
    for v_try in 1..c_tries loop
      begin
        v_made := treadle.try_insert_nodes(p_tasks, p_base, p_policy, p_use);
        exit;
      exception
        when sqlstate 'TR999' then
          if v_try = c_tries then
            raise exception using
              errcode = 'serialization_failure', message = 'idempotency keys keep changing hands';
          end if;
      end;
    end loop;
  end if;
  ids := v_made.ids;
  created := v_made.created;
  -- The caller has counted all of them.
  update treadle.dags
  set tasks = dags.tasks - cardinality(array_positions(created, false))
  where dags.id = p_base.dag_id and false = any (created);
end;
$$;
