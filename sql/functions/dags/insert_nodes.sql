-- insert_nodes: store tasks that depend on each other, and on others, all at once.
--
-- p_home says where they belong: DAG, parent, project, and whether they are held (`created`).
--
-- Concurrency: part of the caller's transaction. Tasks that exist and are depended on are locked,
--              so that none of them ends unseen.
-- Lock order:  tasks, lanes.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR103 cycle,
--              TR202 unknown queue, TR203 unknown type.

-- bind_inputs: put ids in the place of names where the inputs of a task refer to others.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.bind_inputs(p_inputs jsonb, p_ids jsonb, p_dag uuid)
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
            treadle.task_named(split_part(inputs.value, ':', 2), p_dag)::text
          ),
          substr(inputs.value, length(split_part(inputs.value, ':', 2)) + 7)
        )
      end
    )
  from jsonb_each_text(p_inputs) as inputs
$$;

-- store_nodes: write the rows of new tasks that know what they wait for.
--
-- Concurrency: new rows only.
-- Lock order:  tasks.
-- Raises:      TR001 invalid argument.
create or replace function treadle.store_nodes(
  p_tasks    jsonb,
  p_home     treadle.tasks,
  p_ids      uuid[],
  p_kinds    treadle.tasks[],
  p_kind_of  integer[],
  p_waits    integer[],
  p_paths    integer[]
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids jsonb := (
    select jsonb_object_agg(given.task ->> 'name', p_ids[given.at])
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
    where given.task ->> 'name' is not null
  );
begin
  insert into treadle.tasks (
    id, rank, created_at, run_at, deadline_at, timeout_s, parent_id, dag_id, project_id, lane_id,
    blocked_count, priority, max_attempts, max_cost_usd, ageing_rate, status, queue, type, consumer,
    assigned_agent, capabilities, tags, title, created_by, source, source_job, external_ref, notes,
    retry, validation, rerank_at, max_tokens, capped, on_budget, slot, concurrency_key, gates,
    report, models, fallback_models, delayed_at, critical_path, name, inputs, spec
  )
  select
    nodes.id, kind.rank - nodes.path * 1000000::bigint, kind.created_at, kind.run_at,
    kind.deadline_at, kind.timeout_s,
    p_home.parent_id, p_home.dag_id, coalesce(kind.project_id, p_home.project_id), kind.lane_id,
    nodes.waits, kind.priority, kind.max_attempts, kind.max_cost_usd, kind.ageing_rate,
    case
      when p_home.status = 'created' then 'created'
      when nodes.waits > 0 then 'pending'
      else kind.status
    end,
    kind.queue, kind.type, kind.consumer, kind.assigned_agent, kind.capabilities, kind.tags,
    nodes.task ->> 'title', coalesce(kind.created_by, p_home.created_by, session_user),
    kind.source, kind.source_job, kind.external_ref, kind.notes, kind.retry, kind.validation,
    kind.rerank_at, kind.max_tokens, kind.capped, kind.on_budget,
    case when nodes.waits = 0 and p_home.status is distinct from 'created' then kind.slot end,
    kind.concurrency_key, kind.gates, kind.report, kind.models, kind.fallback_models,
    kind.delayed_at, nodes.path, nodes.task ->> 'name',
    case
      when nodes.task -> 'inputs' <> '{}'
        then treadle.bind_inputs(nodes.task -> 'inputs', v_ids, p_home.dag_id)
    end,
    coalesce(nodes.task -> 'spec', '{}')
  from (
    select
      given.task, p_ids[given.at] as id, p_kind_of[given.at] as kind,
      p_waits[given.at] as waits, p_paths[given.at] as path
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
  ) as nodes
  inner join unnest(p_kinds) with ordinality as kind on nodes.kind = kind.ordinality;
end;
$$;

-- check_nodes: refuse tasks of a DAG that are not objects, or whose names are wrong or repeated.
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
    perform treadle.refuse(
      'the tasks must be a json array of at least one object',
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
        when nodes.task ?| array['hold', 'dedupe', 'idempotency_key', 'dag_id', 'parent_id']
          then 'hold, dedupe, idempotency_key, dag_id and parent_id do not go into a DAG'
        when jsonb_typeof(nodes.task -> 'name') not in ('string', 'null')
          then 'a name must be text'
        when not nodes.task ->> 'name' ~ '^[^:[:cntrl:]]{1,100}$' or nodes.task ->> 'name' ~ c_uuid
          then 'a name has 1 to 100 characters, no colon, and is no uuid'
        when
          nodes.task ->> 'name' is not null
          and count(*) over (partition by nodes.task ->> 'name') > 1
          then 'the name is there twice'
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
    perform treadle.refuse(
      format('task %s of the DAG: %s', coalesce(v_wrong.name, '#' || v_wrong.at), v_wrong.problem),
      jsonb_build_object('argument', 'tasks', 'index', v_wrong.at, 'name', v_wrong.name),
      'Correct it and send the whole again: nothing was stored.'
    );
  end if;
end;
$$;

-- node_kinds: check and prepare the tasks of a list, those of one kind together.
--
-- Those that say nothing of a project are of p_project: in a fair queue a lane is a project's.
--
-- Concurrency: may make lanes, see find_lane.
-- Lock order:  lanes.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type.
create or replace function treadle.node_kinds(
  p_tasks    jsonb,
  p_now      timestamptz,
  p_project  uuid default null,
  out kinds   treadle.tasks[],
  out kind_of integer[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_own constant text[] := array['name', 'title', 'spec', 'after', 'inputs'];
  v_kind   record;
  v_places bigint[] := '{}';
  v_kinds  integer[] := '{}';
  v_row    treadle.tasks;
begin
  kinds := '{}';
  for v_kind in
    select
      given.task - c_own as options,
      array_agg(given.at) as places,
      array_agg(coalesce(given.task -> 'spec', '{}') order by given.at) as specs
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
    group by given.task - c_own
    -- The same order for all: two that make the same new lanes do not block each other.
    order by given.task - c_own
  loop
    v_row := treadle.prepare_task(
      case
        when p_project is null or v_kind.options ?| array['project', 'project_id']
          then v_kind.options
        else v_kind.options || jsonb_build_object('project_id', p_project)
      end,
      p_now
    );
    perform treadle.check_specs(
      v_kind.specs,
      (select queues.max_spec_bytes from treadle.queues where queues.name = v_row.queue)
    );
    kinds := kinds || v_row;
    v_places := v_places || v_kind.places;
    v_kinds := v_kinds
      || array_fill(cardinality(kinds), array[cardinality(v_kind.places)]);
  end loop;

  kind_of := array(
    select found.kind from unnest(v_places, v_kinds) as found (place, kind) order by found.place
  );
end;
$$;

-- hold_references: lock the tasks that exist and that a list of new ones names or refers to.
--
-- p_too are locked with them, as one ordered set. Without any reference nothing is locked.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, by id.
-- Raises:      TR001 invalid argument.
create or replace function treadle.hold_references(p_tasks jsonb, p_dag uuid, p_too uuid[])
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
  );
begin
  if v_ids <> '{}' then
    perform treadle.hold_dependencies(v_ids || p_too);
  end if;
end;
$$;

create or replace function treadle.insert_nodes(
  p_tasks   jsonb,
  p_home    treadle.tasks,
  p_policy  text
)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids    uuid[] := array(
    select treadle.uuidv7() from generate_series(1, jsonb_array_length(p_tasks))
  );
  v_names  text[] := array(
    select nodes.task ->> 'name'
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    order by nodes.at
  );
  v_kinds  record;
  v_at     integer[];
  v_on     uuid[];
  v_place  integer[];
  v_loose  boolean[];
  v_met    timestamptz[];
  v_paths  integer[];
begin
  select
    array_agg(edges.at), array_agg(edges.depends_on), array_agg(edges.place),
    array_agg(edges.optional)
  into v_at, v_on, v_place, v_loose
  from treadle.node_edges(p_tasks, v_ids, p_home.dag_id) as edges;

  perform treadle.check_order(v_names, array_agg(edges.at), array_agg(edges.place))
  from unnest(v_at, v_place) as edges (at, place)
  where edges.place is not null
  having count(*) > 0;

  perform treadle.hold_dependencies(array_agg(distinct edges.depends_on))
  from unnest(v_on, v_place) as edges (depends_on, place)
  where edges.place is null
  having count(*) > 0;

  v_kinds := treadle.node_kinds(p_tasks, p_home.created_at, p_home.project_id);
  v_paths := treadle.chain_lengths(cardinality(v_ids), v_at, v_place);
  v_met := array(
    select
      case
        when edges.place is null
          then treadle.met_since(edges.depends_on, edges.optional, p_policy, p_home.created_at)
      end
    from unnest(v_on, v_place, v_loose) with ordinality as edges (depends_on, place, optional, at)
    order by edges.at
  );
  insert into treadle.dependencies (task_id, depends_on, optional, on_dead_letter, met_at)
  select
    v_ids[edges.at], edges.depends_on, edges.optional,
    treadle.edge_policy(p_policy, edges.optional), edges.met_at
  from unnest(v_at, v_on, v_loose, v_met) as edges (at, depends_on, optional, met_at);

  perform treadle.store_nodes(
    p_tasks, p_home, v_ids, v_kinds.kinds, v_kinds.kind_of,
    array(
      select count(edges.at)::integer
      from generate_series(1, cardinality(v_ids)) as nodes (at)
      left join unnest(v_at, v_met) as edges (at, met_at)
        on nodes.at = edges.at and edges.met_at is null
      group by nodes.at
      order by nodes.at
    ),
    v_paths
  );
  perform treadle.raise_paths(array_agg(edges.depends_on), array_agg(v_paths[edges.at] + 1))
  from unnest(v_at, v_on, v_place, v_met) as edges (at, depends_on, place, met_at)
  where edges.place is null and edges.met_at is null
  having count(*) > 0;
  return v_ids;
end;
$$;
