-- pick_over_lanes: lock the best ready tasks over several lanes: an exact merge.
--
-- Looked for without locks, then exactly those are locked. What others took meanwhile is made up
-- for from behind: before it is nothing that could be had.
--
-- Concurrency: rows locked by others are skipped, never waited for.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.pick_over_lanes(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_limit   integer,
  p_budget  numeric
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_picked tid[] := '{}';
  v_ranks  bigint[] := array_fill(-9223372036854775808, array[cardinality(p_lanes)]);
  v_tasks  uuid[] := array_fill(
    '00000000-0000-0000-0000-000000000000'::uuid, array[cardinality(p_lanes)]
  );
  v_turn   integer := 0;
  v_want   integer;
  v_found  record;
  v_next   record;
begin
  loop
    v_turn := v_turn + 1;
    v_want := p_limit - cardinality(v_picked);
    exit when v_want < 1;
    -- The more others are at it, the farther ahead it looks.
    v_found := treadle.peek_lanes(
      p_lanes, p_shifts, v_ranks, v_tasks, v_want * v_turn, p_budget
    );
    exit when v_found.rows is null;
    v_picked := v_picked || treadle.lock_ready(v_found.rows, v_want);
    exit when cardinality(v_found.rows) < v_want * v_turn or cardinality(v_picked) = p_limit;
    v_next := treadle.pass_seen(
      p_lanes, v_found.lanes, v_found.ranks, v_found.tasks, v_ranks, v_tasks
    );
    v_ranks := v_next.ranks;
    v_tasks := v_next.tasks;
  end loop;
  return v_picked;
end;
$$;

comment on function treadle.pick_over_lanes(integer[], bigint[], integer, numeric) is
'Internal: locks up to p_limit ready tasks of several lanes, best first.';

revoke all on function treadle.pick_over_lanes(integer[], bigint[], integer, numeric) from public;
