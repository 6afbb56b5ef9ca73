-- why_turn: the position of a ready task: whether the next claim takes it, or how many come before
-- it.
--
-- The position is the best one over all agents that may take the task.

-- count_ready: count the ready tasks of some lanes, either all of them or those ahead of a task.
--
-- Counts up to 10001, which is enough for display.
create or replace function treadle.count_ready(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_budget  numeric,
  p_task    treadle.tasks default null
)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_shift bigint := p_shifts[array_position(p_lanes, p_task.lane_id)];
begin
  return (
    select count(*)
    from (
      select
      from unnest(p_lanes, p_shifts) as lane (id, shift)
      cross join lateral (
        select
        from treadle.tasks
        where
          tasks.lane_id = lane.id
          and tasks.status = 'ready'
          and tasks.rank <= coalesce(p_task.rank - v_shift + lane.shift, 9223372036854775807)
          and (
            p_task.id is null
            or tasks.rank < p_task.rank - v_shift + lane.shift
            or tasks.id < p_task.id
          )
          and coalesce(tasks.max_cost_usd - tasks.cost_usd, 0) <= coalesce(p_budget, 'Infinity')
        limit 10001
      ) as counted
      limit 10001
    ) as ready
  );
end;
$$;

-- queue_positions: return the position of a ready task in the lanes of each agent that may take it.
--
-- Agents that may take from the same lanes share one row; at most 50 agents are checked. In a fair
-- queue the position counts only tasks of the same project.
create or replace function treadle.queue_positions(
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
    select able.agent, able.has_room
    from treadle.eligible_agents(p_lane, p_now) as able
    order by able.has_room desc, (able.agent).id
    limit 50
  ),

  opened as materialized (
    select
      mine.agent,
      mine.has_room,
      open.lanes,
      open.shifts,
      open.projects,
      treadle.is_fair_claim(open.lanes, open.projects, open.fair) as fair,
      treadle.agent_budget_left((mine.agent).id, p_now) as can_spend
    from mine
    -- A queue that does not exist is an error there, but not here.
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

-- why_probe: the task is next although its lane is closed, because it is the probe of its breaker.
create or replace function treadle.why_probe(
  p_task  treadle.tasks,
  p_lane  treadle.lanes,
  p_now   timestamptz
)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    format(
      'claimable now: the next claim of agent %s takes it, as the probe of its breaker',
      (able.agent).id
    ),
    'claimable',
    null::timestamptz,
    jsonb_build_object('agent', (able.agent).id, 'position', 1, 'probe', true)
  from treadle.eligible_agents(p_lane, p_now) as able
  where
    able.has_room
    and exists (
      select from treadle.breakers
      where breakers.type = p_lane.type and breakers.probe_at <= p_now
    )
    and treadle.is_next_task(p_task, able.agent, p_now)
  order by (able.agent).id
  limit 1
$$;

create or replace function treadle.why_turn(
  p_task  treadle.tasks,
  p_lane  treadle.lanes,
  p_now   timestamptz
)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn record;
begin
  select
    turns.*,
    (turns.agent).id as agent_id,
    turns.has_room and treadle.is_next_task(p_task, turns.agent, p_now) as first
  into v_turn
  from treadle.queue_positions(p_task, p_lane, p_now) as turns
  order by first desc, turns.has_room desc, turns.ahead, agent_id
  limit 1;
  if not found then
    return query select * from treadle.why_probe(p_task, p_lane, p_now);
    return;
  end if;

  detail := jsonb_build_object(
    'agent', v_turn.agent_id, 'position', v_turn.ahead + 1, 'of', v_turn.ready,
    'queues', v_turn.queues, 'fair', v_turn.fair
  );
  if v_turn.first then
    reason := 'claimable';
    sentence := format('claimable now: the next claim of agent %s takes it', v_turn.agent_id);
  else
    reason := 'position';
    sentence := format(
      '%sposition %s of %s in queue%s %s%s',
      case when v_turn.fair then 'projects take turns; ' else '' end,
      case when v_turn.ahead >= 10000 then 'over 10000' else (v_turn.ahead + 1)::text end,
      case when v_turn.ready > 10000 then 'more than 10000' else v_turn.ready::text end,
      case when cardinality(v_turn.queues) > 1 then 's' else '' end,
      array_to_string(v_turn.queues, ', '),
      case when v_turn.fair then ' among those of its project' else '' end
    );
  end if;
  return next;
end;
$$;
