-- chain_lengths: how long the longest chain of tasks behind each task of a list is, up to 30.
--
-- Tasks and edges by their place in the list. Where every edge points to an earlier task, one pass
-- from the end is enough; else passes go on until nothing changes: no more than 30, for each makes
-- every chain right by one task more.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.chain_lengths(integer, integer[], integer[]) is
'Internal: the critical path of each task of a list.';

revoke all on function treadle.chain_lengths(integer, integer[], integer[]) from public;
