-- node_edges: the edges of new tasks, with the ids of what they depend on.
--
-- place is that of the dependency in the same list, or null for a task that exists already.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

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

  -- Each of the others is looked up once.
  others as materialized (
    select outside.ref, treadle.task_named(outside.ref, p_dag) as id
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

comment on function treadle.node_edges(jsonb, uuid[], uuid) is
'Internal: who depends on whom among tasks that are to be stored.';

revoke all on function treadle.node_edges(jsonb, uuid[], uuid) from public;
