-- turns_of: how a ready task stands in the lanes of those who may take it.
--
-- Agents that may take from the same lanes are one row; 50 agents are asked at most. In a fair
-- queue a task stands in line with those of its own project.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.turns_of(
  p_task  treadle.tasks,
  p_lane  treadle.lanes,
  p_now   timestamptz
)
returns table (
  agent treadle.agents, has_room boolean, fair boolean, queues text[], ahead integer,
  ready integer
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  with mine as (
    select takers.agent, takers.has_room
    from treadle.takers(p_lane, p_now) as takers
    order by takers.has_room desc, (takers.agent).id
    limit 50
  ),

  opened as materialized (
    select
      mine.agent,
      mine.has_room,
      open.lanes,
      open.shifts,
      open.projects,
      treadle.are_turns(open.lanes, open.projects, open.fair) as fair,
      treadle.agent_can_spend((mine.agent).id, p_now) as can_spend
    from mine
    -- A queue that does not exist is an error there, and none here.
    cross join lateral treadle.open_lanes(
      mine.agent,
      array(select queues.name from treadle.queues where queues.name = any ((mine.agent).queues)),
      (mine.agent).task_types, p_now
    ) as open
    where p_task.lane_id = any (open.lanes)
  ),

  kinds as (
    select distinct on (opened.lanes, opened.can_spend) opened.*
    from opened
    where
      coalesce(p_task.max_cost_usd - p_task.cost_usd, 0)
      <= coalesce(opened.can_spend, 'Infinity')
    order by opened.lanes, opened.can_spend, opened.has_room desc, (opened.agent).id
  )

  select
    kinds.agent,
    kinds.has_room,
    kinds.fair,
    line.queues,
    treadle.count_ready(line.lanes, line.shifts, kinds.can_spend, p_task),
    treadle.count_ready(line.lanes, line.shifts, kinds.can_spend, null)
  from kinds
  cross join lateral (
    select
      array_agg(lane.id) as lanes,
      array_agg(lane.shift) as shifts,
      array_agg(distinct lanes.queue) as queues
    from unnest(kinds.lanes, kinds.shifts, kinds.projects) as lane (id, shift, project)
    inner join treadle.lanes on lane.id = lanes.id
    where not kinds.fair or lane.project is not distinct from p_lane.project_id
  ) as line
$$;

comment on function treadle.turns_of(treadle.tasks, treadle.lanes, timestamptz) is
'Internal: for each kind of agent that may take a task, how many are before it.';

revoke all on function treadle.turns_of(treadle.tasks, treadle.lanes, timestamptz) from public;
