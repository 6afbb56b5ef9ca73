-- check_order: refuse tasks that would wait for each other in a circle, and name the circle.
--
-- Tasks and edges by their place in the list. Takes time in proportion to their number: where
-- every edge points to an earlier task there is nothing to do, else the tasks that wait for nothing
-- are taken away until none is left.
--
-- Concurrency: none.
-- Lock order:  none.
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

  -- How many each task waits for, and where its children begin in the list of all children.
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
    perform treadle.refuse_circle(p_names, v_left, p_tasks, p_after);
  end if;
end;
$$;

comment on function treadle.check_order(text[], integer[], integer[]) is
'Internal: refuses a list of tasks with a circle of dependencies.';

revoke all on function treadle.check_order(text[], integer[], integer[]) from public;
