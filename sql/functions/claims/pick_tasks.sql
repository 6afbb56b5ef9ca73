-- pick_tasks: lock the best claimable tasks over some lanes, in order of effective priority.
--
-- A single lane is one index scan; several lanes are merged; with p_projects the projects take
-- turns. Tasks that the agent's budget cannot pay are skipped.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks.

-- pick_from_lane: lock the first ready tasks of one lane.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks.
create or replace function treadle.pick_from_lane(
  p_lane    integer,
  p_limit   integer,
  p_budget  numeric default null
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_budget numeric := coalesce(p_budget, 'Infinity');
begin
  return array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.lane_id = p_lane
      and tasks.status = 'ready'
      and coalesce(tasks.max_cost_usd - tasks.cost_usd, 0) <= v_budget
    order by tasks.rank, tasks.id
    limit p_limit
    for update skip locked
  );
end;
$$;

-- lock_ready: lock tasks that are still ready, in the given order, until there are enough.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks.
create or replace function treadle.lock_ready(p_rows tid[], p_limit integer)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  return array(
    select held.ctid
    from unnest(p_rows) as given (row)
    -- One at a time, so that the limit stops the scan and no row is locked needlessly.
    cross join lateral (
      select tasks.ctid
      from treadle.tasks
      where tasks.ctid = given.row and tasks.status = 'ready'
      for update skip locked
    ) as held
    limit p_limit
  );
end;
$$;

-- skip_seen_tasks: start each lane after the tasks that were already tried.
create or replace function treadle.skip_seen_tasks(
  p_lanes       integer[],
  p_seen_lanes  integer[],
  p_seen_ranks  bigint[],
  p_seen_tasks  uuid[],
  inout ranks   bigint[],
  inout tasks   uuid[]
)
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  select
    array_agg(coalesce(last.rank, lane.rank) order by lane.at),
    array_agg(coalesce(last.task, lane.task) order by lane.at)
  into ranks, tasks
  from unnest(p_lanes, ranks, tasks) with ordinality as lane (id, rank, task, at)
  left join (
    select distinct on (seen.lane) seen.lane, seen.rank, seen.task
    from unnest(p_seen_lanes, p_seen_ranks, p_seen_tasks) as seen (lane, rank, task)
    order by seen.lane, seen.rank desc, seen.task desc
  ) as last on lane.id = last.lane;
end;
$$;

-- peek_lanes: return the best ready tasks over some lanes, best first, without locking them.
--
-- A few rows of each lane are read and merged. Only a lane whose rows are all among the best can
-- have more of them; from such lanes twice as many rows are read next. Each pass reads at most
-- twice p_limit rows, because the remaining lanes hold at most p_limit of the best.
--
-- p_ranks and p_tasks give the task of each lane after which to start.
create or replace function treadle.peek_lanes(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_ranks   bigint[],
  p_tasks   uuid[],
  p_limit   integer,
  p_budget  numeric,
  out lanes   integer[],
  out shifts  bigint[],
  out ranks   bigint[],
  out tasks   uuid[],
  out rows    tid[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_budget numeric := coalesce(p_budget, 'Infinity');
  v_depth  integer := ceil(2.0 * p_limit / cardinality(p_lanes));
  v_lanes  integer[] := p_lanes;
  v_shifts bigint[] := p_shifts;
  v_ranks  bigint[] := p_ranks;
  v_tasks  uuid[] := p_tasks;
begin
  loop
    v_depth := least(v_depth, p_limit);
    select
      array_agg(best.lane), array_agg(best.shift), array_agg(best.rank),
      array_agg(best.task), array_agg(best.row),
      -- Rows after the last of the best tasks are not needed.
      array_agg(best.lane) filter (where best.more and best.at < p_limit),
      array_agg(best.shift) filter (where best.more and best.at < p_limit),
      array_agg(best.rank) filter (where best.more and best.at < p_limit),
      array_agg(best.task) filter (where best.more and best.at < p_limit)
    into lanes, shifts, ranks, tasks, rows, v_lanes, v_shifts, v_ranks, v_tasks
    from (
      select every.*, row_number() over (order by every.rank - every.shift, every.task) as at
      from (
        select given.lane, given.shift, given.rank, given.task, given.row, false as more
        from unnest(lanes, shifts, ranks, tasks, rows) as given (lane, shift, rank, task, row)
        union all
        select lane.id, lane.shift, ready.rank, ready.id, ready.ctid, ready.at = v_depth
        from unnest(v_lanes, v_shifts, v_ranks, v_tasks) as lane (id, shift, rank, task)
        cross join lateral (
          select
            head.ctid, head.rank, head.id,
            row_number() over (order by head.rank, head.id) as at
          from treadle.tasks as head
          where
            head.lane_id = lane.id
            and head.status = 'ready'
            and (head.rank, head.id) > (lane.rank, lane.task)
            and coalesce(head.max_cost_usd - head.cost_usd, 0) <= v_budget
          order by head.rank, head.id
          limit v_depth
        ) as ready
      ) as every
      order by every.rank - every.shift, every.task
      limit p_limit
    ) as best;
    exit when v_lanes is null;
    v_depth := 2 * v_depth;
  end loop;
end;
$$;

-- pick_over_lanes: lock the best ready tasks over several lanes with an exact merge.
--
-- The tasks are found without locks, and then exactly those are locked. Tasks that others took in
-- the meantime are replaced by later ones; earlier ones were not available.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks.
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
    -- The more rows others have locked, the further it reads ahead.
    v_found := treadle.peek_lanes(
      p_lanes, p_shifts, v_ranks, v_tasks, v_want * v_turn, p_budget
    );
    exit when v_found.rows is null;
    v_picked := v_picked || treadle.lock_ready(v_found.rows, v_want);
    exit when cardinality(v_found.rows) < v_want * v_turn or cardinality(v_picked) = p_limit;
    v_next := treadle.skip_seen_tasks(
      p_lanes, v_found.lanes, v_found.ranks, v_found.tasks, v_ranks, v_tasks
    );
    v_ranks := v_next.ranks;
    v_tasks := v_next.tasks;
  end loop;
  return v_picked;
end;
$$;

create or replace function treadle.pick_tasks(
  p_lanes     integer[],
  p_shifts    bigint[],
  p_limit     integer,
  p_budget    numeric default null,
  p_projects  uuid[] default null
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when cardinality(p_lanes) = 1
      then treadle.pick_from_lane(p_lanes[1], p_limit, p_budget)
    when p_projects is not null
      then treadle.pick_fair(p_lanes, p_shifts, p_projects, p_limit, p_budget)
    else treadle.pick_over_lanes(p_lanes, p_shifts, p_limit, p_budget)
  end;
end;
$$;
