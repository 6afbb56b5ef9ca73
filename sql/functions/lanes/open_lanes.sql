-- open_lanes: return the lanes from which an agent may claim tasks now. All gates are checked here.
--
-- Closed queues, types and gates are looked up first by name, because they are few and lanes may be
-- many. The result also says what the claim has to check: rate limits, budgets, and breakers that
-- are due for a probe.
--
-- Raises:      TR202 unknown queue.

-- lane_matches_agent: return whether a lane matches an agent, regardless of what is open or closed
-- now.
--
-- In some queues an agent may take only tasks that are assigned to it. Short, so that it is inlined
-- into its callers.
create or replace function treadle.lane_matches_agent(p_lane treadle.lanes, p_agent treadle.agents)
returns boolean
language sql
immutable
parallel safe
return (
  p_lane.capabilities <@ p_agent.capabilities
  and (p_lane.agent_id is null or p_lane.agent_id = p_agent.id)
  and (p_lane.agent_id is not null or p_lane.queue <> all (p_agent.assigned_only))
);

-- probe_lanes: return the lanes of one type from which an agent could get a probe of its breaker.
--
-- Like open_lanes, except for the breaker itself. Both results are null if there is none.
create or replace function treadle.probe_lanes(
  p_agent   treadle.agents,
  p_queues  text[],
  p_type    text,
  p_now     timestamptz,
  out lanes   integer[],
  out shifts  bigint[]
)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    array_agg(lane.id),
    array_agg(treadle.ageing_offset_at(lane.ageing, treadle.rank_ms(p_now)))
  from treadle.lanes as lane
  inner join treadle.queues on lane.queue = queues.name
  inner join treadle.task_types on lane.type = task_types.name
  where
    lane.type = p_type
    and lane.queue = any (p_queues)
    and queues.assignment <> 'manual'
    and queues.paused_at is null
    and task_types.paused_at is null
    and treadle.lane_matches_agent(lane, p_agent)
    and not exists (
      select from treadle.gates
      where gates.key = any (lane.gates) and gates.closed_until > p_now
    )
$$;

create or replace function treadle.open_lanes(
  p_agent   treadle.agents,
  p_queues  text[],
  p_types   text[],
  p_now     timestamptz,
  out lanes     integer[],
  out shifts    bigint[],
  out projects  uuid[],
  out fair      boolean,
  out limited   boolean,
  out budgeted  boolean,
  out probing   boolean
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ms      bigint := treadle.rank_ms(p_now);
  v_closed_types    text[];
  v_closed  text[];
  v_limited text[];
  v_unknown text;
begin
  select
    array(
      select task_types.name from treadle.task_types where task_types.paused_at is not null
      union all
      -- The probe of an open breaker is claimed separately; see pick_probe.
      select breakers.type from treadle.breakers where breakers.state <> 'closed'
    ),
    array(select gates.key from treadle.gates where gates.closed_until > p_now),
    array(select gates.key from treadle.gates where gates.unit is not null),
    exists (select from treadle.breakers where breakers.probe_at <= p_now),
    exists (select from treadle.budgets)
  into v_closed_types, v_closed, v_limited, probing, budgeted;

  select
    array_agg(lane.id),
    array_agg(treadle.ageing_offset_at(lane.ageing, v_ms)),
    array_agg(lane.project_id),
    coalesce(bool_or(queues.fair), false),
    v_limited <> '{}' and coalesce(bool_or(lane.gates && v_limited), false)
  into lanes, shifts, projects, fair, limited
  from treadle.lanes as lane
  inner join treadle.queues on lane.queue = queues.name
  where
    lane.queue = any (p_queues)
    and queues.assignment <> 'manual'
    and queues.paused_at is null
    and (p_types is null or lane.type = any (p_types))
    and (v_closed_types = '{}' or lane.type <> all (v_closed_types))
    and (v_closed = '{}' or not lane.gates && v_closed)
    and treadle.lane_matches_agent(lane, p_agent);

  if lanes is null then
    select given.name
    into v_unknown
    from unnest(p_queues) as given (name)
    where not exists (select from treadle.queues where queues.name = given.name)
    limit 1;
    if found then
      perform treadle.check_names(v_unknown, null);
    end if;
  end if;
end;
$$;
