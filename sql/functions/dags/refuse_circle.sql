-- refuse_circle: find a circle among tasks that all wait for each other, and say which it is.
--
-- Given how many dependencies each task has left; every one that has any waits for another such.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR103 cycle.

create or replace function treadle.refuse_circle(
  p_names  text[],
  p_left   integer[],
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
      on places.at = edges.task and p_left[edges.after] > 0
    group by places.at
    order by places.at
  );
  v_path integer[] := '{}';
  v_seen integer[] := array_fill(0, array[cardinality(p_names)]);
  v_at   integer;
begin
  select places.at into v_at
  from unnest(p_left) with ordinality as places (waits, at)
  where places.waits > 0
  order by places.at
  limit 1;
  while v_seen[v_at] = 0 loop
    v_path := v_path || v_at;
    v_seen[v_at] := cardinality(v_path);
    v_at := v_waits_for[v_at];
  end loop;
  v_path := v_path[v_seen[v_at]:] || v_at;

  perform treadle.refuse(
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
    'Take one of these dependencies away.',
    'TR103'
  );
end;
$$;

comment on function treadle.refuse_circle(text[], integer[], integer[], integer[]) is
'Internal: raises with the names of tasks that wait for each other.';

revoke all on function treadle.refuse_circle(text[], integer[], integer[], integer[]) from public;
