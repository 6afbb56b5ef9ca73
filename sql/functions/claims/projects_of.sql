-- projects_of: the projects that have ready tasks in some lanes, in order, with what they run.
--
-- Lanes of one project are next to each other, from firsts to lasts. Tasks without a project are
-- one more project, with a share of 1. What runs is counted, in all queues of the lanes.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.projects_of(integer[], bigint[], uuid[]) is
'Internal: who has tasks to claim, and how much of theirs is under way.';

revoke all on function treadle.projects_of(integer[], bigint[], uuid[]) from public;
