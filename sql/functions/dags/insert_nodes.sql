-- insert_nodes: store tasks that depend on each other, and on others, all at once.
--
-- p_home says where they belong: DAG, parent, project, and whether they are held (`created`).
--
-- Concurrency: part of the caller's transaction. Tasks that exist and are depended on are locked,
--              so that none of them ends unseen.
-- Lock order:  tasks, lanes.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR103 cycle,
--              TR202 unknown queue, TR203 unknown type.

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

comment on function treadle.insert_nodes(jsonb, treadle.tasks, text) is
'Internal: stores tasks with their edges; one id for each, in order.';

revoke all on function treadle.insert_nodes(jsonb, treadle.tasks, text) from public;
