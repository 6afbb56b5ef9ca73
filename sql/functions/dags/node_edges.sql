-- node_edges: return the edges of new tasks, with the ids of their dependencies.
--
-- place is the position of the dependency in the same list, or null for an existing task.
--
-- Raises:      TR001 invalid argument.

-- find_referenced_task: find the task of a reference: a task of the DAG by name, or any task by id.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.find_referenced_task(p_ref text, p_dag uuid)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_uuid constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  v_id uuid;
begin
  if p_ref ~ c_uuid then
    select tasks.id into v_id from treadle.tasks where tasks.id = p_ref::uuid;
  elsif p_dag is not null then
    select tasks.id into v_id from treadle.tasks where tasks.dag_id = p_dag and tasks.name = p_ref;
  end if;
  if v_id is null then
    perform treadle.raise_error(
      format('there is no task %s to depend on', coalesce(quote_literal(left(p_ref, 100)), 'null')),
      jsonb_build_object('argument', 'after', 'task', left(p_ref, 200)),
      case
        when p_dag is null then 'Use the id of an existing task.'
        else 'Use the name of a task of the same DAG, or the id of any task.'
      end
    );
  end if;
  return v_id;
end;
$$;

-- node_refs: return what the tasks of a DAG refer to in after and inputs.
--
-- An input is also a dependency; after may declare it as optional.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.node_refs(p_tasks jsonb)
returns table (at integer, ref text, optional boolean)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong record;
begin
  select nodes.at - 1 as at, edges.edge
  into v_wrong
  from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
  cross join lateral jsonb_array_elements(nodes.task -> 'after') as edges (edge)
  where
    jsonb_typeof(nodes.task -> 'after') = 'array'
    and case jsonb_typeof(edges.edge)
      when 'string' then false
      when 'object'
        then edges.edge - array['task', 'optional'] <> '{}'
          or jsonb_typeof(edges.edge -> 'task') is distinct from 'string'
          or jsonb_typeof(edges.edge -> 'optional') not in ('boolean', 'null')
      else true
    end
  limit 1;
  if found then
    perform treadle.raise_error(
      format('%s is not a dependency', treadle.excerpt(v_wrong.edge)),
      jsonb_build_object('argument', 'after', 'index', v_wrong.at),
      'Write the name or id of a task, or {"task": "<name or id>", "optional": true}.'
    );
  end if;

  return query
  select given.at, given.ref, bool_and(given.optional) filter (where given.source = 'after')
    is true
  from (
    select
      nodes.at::integer as at,
      case
        when jsonb_typeof(edges.edge) = 'object' then edges.edge ->> 'task'
        else edges.edge #>> '{}'
      end as ref,
      coalesce(edges.edge -> 'optional' = 'true', false) as optional,
      'after' as source
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    cross join lateral jsonb_array_elements(nodes.task -> 'after') as edges (edge)
    where jsonb_typeof(nodes.task -> 'after') = 'array'
    union all
    select
      nodes.at::integer, (regexp_match(inputs.value, '^task:([^:]+):'))[1], false, 'inputs'
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    cross join lateral jsonb_each_text(nodes.task -> 'inputs') as inputs
    where jsonb_typeof(nodes.task -> 'inputs') = 'object' and inputs.value like 'task:%'
  ) as given
  group by given.at, given.ref;

  select nodes.at - 1 as at, inputs.key, inputs.value
  into v_wrong
  from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
  cross join lateral jsonb_each(nodes.task -> 'inputs') as inputs
  where
    jsonb_typeof(nodes.task -> 'inputs') = 'object'
    and not coalesce(
      inputs.value #>> '{}'
      ~ (
        '^(task:[^:]+:(output(\.[^.]+)*|artifact:.+)'
        || '|artifact:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$'
      ),
      false
    )
  limit 1;
  if found then
    perform treadle.raise_error(
      format(
        'input %s refers to %s',
        treadle.excerpt_name(v_wrong.key), treadle.excerpt(v_wrong.value)
      ),
      jsonb_build_object(
        'argument', 'inputs', 'index', v_wrong.at, 'input', treadle.excerpt_name(v_wrong.key)
      ),
      'Write task:<name or id>:output, task:<name or id>:output.key, '
      || 'task:<name or id>:artifact:<name>, or artifact:<id>.'
    );
  end if;

  select nodes.at - 1 as at, inputs.key, inputs.value
  into v_wrong
  from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
  cross join lateral jsonb_each_text(nodes.task -> 'inputs') as inputs
  where
    jsonb_typeof(nodes.task -> 'inputs') = 'object'
    and case
      when inputs.value like 'artifact:%'
        then (treadle.find_artifact(substr(inputs.value, 10)::uuid, null, null)).id is null
    end
  limit 1;
  if found then
    perform treadle.raise_error(
      format(
        'input %s refers to %s, which does not exist', treadle.excerpt_name(v_wrong.key),
        v_wrong.value
      ),
      jsonb_build_object(
        'argument', 'inputs', 'index', v_wrong.at, 'input', treadle.excerpt_name(v_wrong.key)
      ),
      'To list artifacts: treadle artifacts list.'
    );
  end if;
end;
$$;

create or replace function treadle.node_edges(p_tasks jsonb, p_ids uuid[], p_dag uuid)
returns table (at integer, depends_on uuid, place integer, optional boolean)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  with refs as materialized (
    select found.at, found.ref, found.optional from treadle.node_refs(p_tasks) as found
  ),

  names as materialized (
    select nodes.task ->> 'name' as name, nodes.at::integer as at
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
  ),

  -- Each of the other tasks is looked up once.
  others as materialized (
    select outside.ref, treadle.find_referenced_task(outside.ref, p_dag) as id
    from (
      select distinct refs.ref
      from refs
      where not exists (select from names where names.name = refs.ref)
    ) as outside
  )

  select
    refs.at,
    coalesce(p_ids[names.at], others.id),
    names.at,
    bool_and(refs.optional)
  from refs
  left join names on refs.ref = names.name
  left join others on refs.ref = others.ref
  group by refs.at, names.at, others.id;
end;
$$;

-- raise_cycle: find a cycle among tasks that all wait for each other, and raise an error with it.
--
-- The argument is the number of unmet dependencies of each task; each task with any waits for
-- another such task.
--
-- Raises:      TR103 cycle.
create or replace function treadle.raise_cycle(
  p_names  text[],
  p_unmet   integer[],
  p_tasks  integer[],
  p_after  integer[]
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_waits_for integer[] := array(
    select min(edges.after)
    from generate_series(1, cardinality(p_names)) as places (at)
    left join unnest(p_tasks, p_after) as edges (task, after)
      on places.at = edges.task and p_unmet[edges.after] > 0
    group by places.at
    order by places.at
  );
  v_path integer[] := '{}';
  v_seen integer[] := array_fill(0, array[cardinality(p_names)]);
  v_at   integer;
begin
  select places.at into v_at
  from unnest(p_unmet) with ordinality as places (waits, at)
  where places.waits > 0
  order by places.at
  limit 1;
  while v_seen[v_at] = 0 loop
    v_path := v_path || v_at;
    v_seen[v_at] := cardinality(v_path);
    v_at := v_waits_for[v_at];
  end loop;
  v_path := v_path[v_seen[v_at]:] || v_at;

  perform treadle.raise_error(
    format(
      'these tasks wait for each other: %s',
      (
        select string_agg(coalesce(p_names[path.place], '#' || path.place), ' -> ' order by path.at)
        from unnest(v_path[:20]) with ordinality as path (place, at)
      )
    ),
    jsonb_build_object(
      'cycle',
      array(
        select coalesce(p_names[path.place], '#' || path.place)
        from unnest(v_path) with ordinality as path (place, at)
        order by path.at
      )
    ),
    'Remove one of these dependencies.',
    'TR103'
  );
end;
$$;

-- check_order: reject tasks that would wait for each other in a cycle, and name the cycle.
--
-- Tasks and edges are given by their position in the list. The time is linear: if every edge points
-- to an earlier task nothing has to be done; otherwise tasks without unmet dependencies are removed
-- until none is left.
--
-- Raises:      TR103 cycle.
create or replace function treadle.check_order(
  p_names  text[],
  p_tasks  integer[],
  p_after  integer[]
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left   integer[];
  v_first  integer[];
  v_child  integer[];
  v_free   integer[];
  v_taken  integer := 0;
  v_task   integer;
begin
  if not exists (
    select from unnest(p_tasks, p_after) as edges (task, after) where edges.after >= edges.task
  ) then
    return;
  end if;

  -- The number of dependencies of each task, and where its children start in the list of all
  -- children.
  select array_agg(nodes.waits order by nodes.at), array_agg(nodes.first order by nodes.at)
  into v_left, v_first
  from (
    select
      places.at,
      coalesce(waits.edges, 0) as waits,
      coalesce(sum(children.edges) over (order by places.at), 0)
      - coalesce(children.edges, 0) + 1 as first
    from generate_series(1, cardinality(p_names)) as places (at)
    left join (
      select edges.task, count(*)::integer as edges
      from unnest(p_tasks) as edges (task) group by edges.task
    ) as waits on places.at = waits.task
    left join (
      select edges.after, count(*)::integer as edges
      from unnest(p_after) as edges (after) group by edges.after
    ) as children on places.at = children.after
  ) as nodes;
  v_first := v_first || (cardinality(p_tasks) + 1);
  v_child := array(
    select edges.task from unnest(p_tasks, p_after) as edges (task, after) order by edges.after
  );
  v_free := array(
    select places.at
    from unnest(v_left) with ordinality as places (waits, at)
    where places.waits = 0
  );

  while v_taken < cardinality(v_free) loop
    v_taken := v_taken + 1;
    v_task := v_free[v_taken];
    for v_edge in v_first[v_task]..v_first[v_task + 1] - 1 loop
      v_left[v_child[v_edge]] := v_left[v_child[v_edge]] - 1;
      if v_left[v_child[v_edge]] = 0 then
        v_free := v_free || v_child[v_edge];
      end if;
    end loop;
  end loop;

  if v_taken < cardinality(p_names) then
    perform treadle.raise_cycle(p_names, v_left, p_tasks, p_after);
  end if;
end;
$$;

-- chain_lengths: return the length of the longest chain of tasks behind each task, up to 30.
--
-- Tasks and edges are given by their position in the list. If every edge points to an earlier task,
-- one pass from the end is enough; otherwise passes repeat until nothing changes, at most 30, since
-- each pass extends every chain by one task.
create or replace function treadle.chain_lengths(
  p_count  integer,
  p_tasks  integer[],
  p_after  integer[]
)
returns integer[]
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lengths integer[] := array_fill(0, array[p_count]);
  v_tasks   integer[];
  v_after   integer[];
  v_sorted  boolean;
  v_stable  boolean;
  v_length  integer;
begin
  select
    array_agg(edges.task order by edges.task desc),
    array_agg(edges.after order by edges.task desc),
    bool_and(edges.after < edges.task)
  into v_tasks, v_after, v_sorted
  from unnest(p_tasks, p_after) as edges (task, after)
  where edges.after is not null;

  loop
    v_stable := true;
    for v_at in 1..coalesce(cardinality(v_tasks), 0) loop
      v_length := least(v_lengths[v_tasks[v_at]] + 1, 30);
      if v_lengths[v_after[v_at]] < v_length then
        v_lengths[v_after[v_at]] := v_length;
        v_stable := false;
      end if;
    end loop;
    exit when v_stable or v_sorted;
  end loop;
  return v_lengths;
end;
$$;
