-- pick_fair: lock ready tasks so that projects take turns, and inside a project the best ones.
--
-- In rounds: what a project cannot use, or what others took meanwhile, is shared out again.
--
-- Concurrency: rows locked by others are skipped, never waited for. What runs is counted without
--              a lock: claims at the same time do not see each other; later ones make up for it.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.pick_fair(
  p_lanes     integer[],
  p_shifts    bigint[],
  p_projects  uuid[],
  p_limit     integer,
  p_budget    numeric
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_all        record := treadle.projects_of(p_lanes, p_shifts, p_projects);
  v_picked     tid[] := '{}';
  v_shares     float8[] := v_all.shares;
  v_busy       bigint[] := v_all.running;
  v_ranks      bigint[];
  v_tasks      uuid[];
  v_turns      integer[];
  v_seen       integer[];
  v_seen_ranks bigint[];
  v_seen_tasks uuid[];
  v_first      integer;
  v_last       integer;
  v_found      record;
  v_next       record;
begin
  if v_all.lanes is null then
    return v_picked;
  end if;
  v_ranks := array_fill(-9223372036854775808, array[cardinality(v_all.lanes)]);
  v_tasks := array_fill(
    '00000000-0000-0000-0000-000000000000'::uuid, array[cardinality(v_all.lanes)]
  );

  while cardinality(v_picked) < p_limit loop
    v_turns := treadle.project_turns(v_busy, v_shares, p_limit - cardinality(v_picked));
    v_seen := '{}';
    v_seen_ranks := '{}';
    v_seen_tasks := '{}';
    for v_at in 1..cardinality(v_turns) loop
      continue when v_turns[v_at] = 0;
      v_first := v_all.firsts[v_at];
      v_last := v_all.lasts[v_at];
      v_found := treadle.peek_lanes(
        v_all.lanes[v_first:v_last], v_all.shifts[v_first:v_last], v_ranks[v_first:v_last],
        v_tasks[v_first:v_last], v_turns[v_at], p_budget
      );
      if v_found.rows is not null then
        v_picked := v_picked || treadle.lock_ready(v_found.rows, v_turns[v_at]);
        -- Those that somebody else holds run in a moment.
        v_busy[v_at] := v_busy[v_at] + cardinality(v_found.rows);
        v_seen := v_seen || v_found.lanes;
        v_seen_ranks := v_seen_ranks || v_found.ranks;
        v_seen_tasks := v_seen_tasks || v_found.tasks;
      end if;
      if coalesce(cardinality(v_found.rows), 0) < v_turns[v_at] then
        v_shares[v_at] := null;
      end if;
    end loop;
    exit when cardinality(v_picked) = p_limit or array_remove(v_shares, null) = '{}';
    v_next := treadle.pass_seen(
      v_all.lanes, v_seen, v_seen_ranks, v_seen_tasks, v_ranks, v_tasks
    );
    v_ranks := v_next.ranks;
    v_tasks := v_next.tasks;
  end loop;
  return v_picked;
end;
$$;

comment on function treadle.pick_fair(integer[], bigint[], uuid[], integer, numeric) is
'Internal: locks up to p_limit ready tasks of several projects by their shares.';

revoke all on function treadle.pick_fair(integer[], bigint[], uuid[], integer, numeric)
from public;
