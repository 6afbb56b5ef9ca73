-- pick_fair: lock ready tasks so that projects take turns, and the best tasks within each project.
--
-- It works in rounds: tasks that a project cannot use, or that others took, are shared out again.
--
-- Concurrency: skips locked rows. Running tasks are counted without a lock: concurrent claims do
-- not see each other, and later claims even that out.
-- Lock order:  tasks.

-- projects_of: return the projects that have ready tasks in some lanes, with their running tasks.
--
-- The lanes of a project are adjacent, from firsts to lasts. Tasks without a project count as one
-- more project with a share of 1. Running tasks are counted in all queues of the lanes.
create or replace function treadle.projects_of(
  p_lanes     integer[],
  p_shifts    bigint[],
  p_projects  uuid[],
  out lanes    integer[],
  out shifts   bigint[],
  out firsts   bigint[],
  out lasts    bigint[],
  out running  bigint[],
  out shares   float8[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_queues  text[];
  v_busy    uuid[];
  v_counts  bigint[];
  v_owners  uuid[];
begin
  select
    array_agg(lane.id order by lane.project, lane.id),
    array_agg(lane.shift order by lane.project, lane.id),
    array_agg(lane.project order by lane.project, lane.id)
  into lanes, shifts, v_owners
  from unnest(p_lanes, p_shifts, p_projects) as lane (id, shift, project)
  where exists (
    select from treadle.tasks where tasks.lane_id = lane.id and tasks.status = 'ready'
  );
  v_queues := array(
    select distinct named.queue from treadle.lanes as named where named.id = any (lanes)
  );

  select array_agg(busy.project_id), array_agg(busy.tasks)
  into v_busy, v_counts
  from (
    select owned.project_id, count(*) as tasks
    from treadle.tasks
    inner join treadle.lanes as owned on tasks.lane_id = owned.id
    where tasks.status in ('claimed', 'running', 'validating') and tasks.queue = any (v_queues)
    group by owned.project_id
  ) as busy;

  select
    array_agg(project.first order by project.first),
    array_agg(project.last order by project.first),
    array_agg(coalesce(busy.tasks, 0) order by project.first),
    array_agg(coalesce(projects.share, 1)::float8 order by project.first)
  into firsts, lasts, running, shares
  from (
    select owner.id, min(owner.at) as first, max(owner.at) as last
    from unnest(v_owners) with ordinality as owner (id, at)
    group by owner.id
  ) as project
  left join treadle.projects on project.id = projects.id
  left join unnest(v_busy, v_counts) as busy (id, tasks) on project.id is not distinct from busy.id;
end;
$$;

-- fair_shares: return how many of the next tasks each project may have.
--
-- The next task goes to the project with the fewest running tasks relative to its share, and so on.
-- No project gets more than v_level per point of its share: at that level all tasks are assigned.
-- Ties are broken at random, weighted by share; otherwise a worker with one slot, which never sees
-- running tasks, would always serve the same project. A project without a share has no tasks left.
create or replace function treadle.fair_shares(
  p_running  bigint[],
  p_shares   float8[],
  p_limit    integer
)
returns integer[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_level float8 := (
    select (sum(project.running) + p_limit) / sum(project.share)
    from unnest(p_running, p_shares) as project (running, share)
    where project.share is not null
  );
begin
  return array(
    select count(turns.at)::integer
    from generate_series(1, cardinality(p_running)) as projects (at)
    left join (
      select project.at
      from (
        select given.at, given.running, given.share, -ln(1 - random()) / given.share as dice
        from unnest(p_running, p_shares) with ordinality as given (running, share, at)
        where given.share is not null
      ) as project
      cross join lateral generate_series(
        project.running,
        least(project.running + p_limit - 1, ceil(v_level * project.share)::bigint)
      ) as turn (number)
      order by turn.number / project.share, project.dice
      limit p_limit
    ) as turns on projects.at = turns.at
    group by projects.at
    order by projects.at
  );
end;
$$;

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
    v_turns := treadle.fair_shares(v_busy, v_shares, p_limit - cardinality(v_picked));
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
        -- Tasks that are locked are about to run.
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
    v_next := treadle.skip_seen_tasks(
      v_all.lanes, v_seen, v_seen_ranks, v_seen_tasks, v_ranks, v_tasks
    );
    v_ranks := v_next.ranks;
    v_tasks := v_next.tasks;
  end loop;
  return v_picked;
end;
$$;
