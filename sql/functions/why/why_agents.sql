-- why_agents: no agent can take the task: none matches it, or those that do have no room.

-- is_live: return whether an agent is active and has sent a heartbeat recently.
create or replace function treadle.is_live(p_agent treadle.agents, p_now timestamptz)
returns boolean
language sql
stable
parallel safe
return (
  p_agent.status = 'active'
  and p_agent.heartbeat_at + pg_catalog.make_interval(secs => 3 * p_agent.heartbeat_s) > p_now
);

comment on function treadle.is_live(treadle.agents, timestamptz) is
'Whether an agent is active, with a heartbeat within the last three intervals.';

-- eligible_agents: return the live agents that may take tasks of a lane, and how many tasks each
-- has.
--
-- Whether the lane is open is checked elsewhere, see open_lanes; so is whether an agent has room.
create or replace function treadle.eligible_agents(p_lane treadle.lanes, p_now timestamptz)
returns table (agent treadle.agents, held bigint, has_room boolean)
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select
    agents,
    hand.held,
    agents.claims_ahead or coalesce(agents.max_concurrent_tasks > hand.held, true)
  from treadle.agents
  cross join lateral (
    select count(*) as held
    from treadle.tasks
    where
      tasks.agent_id = agents.id and tasks.status in ('claimed', 'running', 'validating')
  ) as hand
  where
    treadle.is_live(agents, p_now)
    and p_lane.queue = any (agents.queues)
    and (agents.task_types is null or p_lane.type = any (agents.task_types))
    and treadle.lane_matches_agent(p_lane, agents)
  order by agents.id
$$;

-- why_assigned: the only agent that may run the task cannot claim it.
create or replace function treadle.why_assigned(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_agent   treadle.agents;
  v_missing text[];
begin
  select agents.* into v_agent from treadle.agents where agents.id = p_lane.agent_id;
  v_missing := array(
    select needed.name from unnest(p_lane.capabilities) as needed (name)
    where needed.name <> all (v_agent.capabilities)
  );
  sentence := format(
    'assigned to agent %s, which %s', p_lane.agent_id,
    case
      when v_agent.id is null then 'is not registered'
      when v_agent.status <> 'active' then 'is ' || v_agent.status
      when not treadle.is_live(v_agent, p_now)
        then format(
          'is offline: no heartbeat since %s',
          treadle.format_duration(p_now - v_agent.heartbeat_at)
        )
      when p_lane.queue <> all (v_agent.queues) then 'does not serve queue ' || p_lane.queue
      when p_lane.type <> all (v_agent.task_types) then 'does not handle type ' || p_lane.type
      else 'lacks ' || array_to_string(v_missing, ', ')
    end
  );
  reason := 'assigned';
  detail := jsonb_strip_nulls(
    jsonb_build_object(
      'agent', p_lane.agent_id, 'status', v_agent.status,
      'heartbeat_at', treadle.format_rfc3339(v_agent.heartbeat_at),
      'queue', p_lane.queue, 'type', p_lane.type, 'missing', nullif(v_missing, '{}')
    )
  );
  return next;
end;
$$;

-- why_no_agent: no live agent matches the lane; which capability, type or queue is missing.
create or replace function treadle.why_no_agent(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_known   text[];
  v_serve   integer;
  v_handle  integer;
  v_missing text[];
begin
  select
    array_agg(capability.name) filter (where fits.handles and capability.name is not null),
    count(distinct agents.id) filter (where fits.serves),
    count(distinct agents.id) filter (where fits.handles)
  into v_known, v_serve, v_handle
  from treadle.agents
  left join lateral unnest(agents.capabilities) as capability (name) on true
  cross join lateral (
    select
      p_lane.queue = any (agents.queues) as serves,
      p_lane.queue = any (agents.queues)
      and (agents.task_types is null or p_lane.type = any (agents.task_types)) as handles
  ) as fits
  where treadle.is_live(agents, p_now);

  detail := jsonb_build_object('queue', p_lane.queue, 'type', p_lane.type);
  if v_serve = 0 then
    reason := 'no_agent';
    sentence := 'no live agent serves queue ' || p_lane.queue;
  elsif v_handle = 0 then
    reason := 'no_handler';
    sentence := 'no live agent of the queue handles type ' || p_lane.type;
  else
    v_missing := array(
      select needed.name from unnest(p_lane.capabilities) as needed (name)
      where needed.name <> all (coalesce(v_known, '{}'))
    );
    reason := 'no_capability';
    sentence := format(
      'no live agent of the queue has %s %s',
      case cardinality(v_missing)
        when 0 then 'all of' when 1 then 'capability' else 'capabilities'
      end,
      array_to_string(coalesce(nullif(v_missing, '{}'), p_lane.capabilities), ', ')
    );
    detail := detail || jsonb_build_object(
      'capabilities', p_lane.capabilities, 'missing', v_missing
    );
  end if;
  return next;
end;
$$;

create or replace function treadle.why_agents(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fits record;
  v_full text;
begin
  select
    bool_or(able.has_room) as room,
    jsonb_agg(
      jsonb_build_object(
        'id', (able.agent).id, 'held', able.held, 'max', (able.agent).max_concurrent_tasks
      )
    ) filter (where not able.has_room) as full,
    string_agg(
      format('%s %s of %s', (able.agent).id, able.held, (able.agent).max_concurrent_tasks),
      ', '
    ) as words
  into v_fits
  from treadle.eligible_agents(p_lane, p_now) as able;
  if v_fits.room then
    return;
  end if;

  if v_fits.room is null then
    if p_lane.agent_id is null then
      return query select * from treadle.why_no_agent(p_lane, p_now);
    else
      return query select * from treadle.why_assigned(p_lane, p_now);
    end if;
    return;
  end if;

  v_full := case
    when length(v_fits.words) > 300 then left(v_fits.words, 300) || ' …' else v_fits.words
  end;
  sentence := case
    when p_lane.agent_id is null
      then format('every agent that could take it is at its limit (%s)', v_full)
    else format('assigned to agent %s, which is at its limit (%s)', p_lane.agent_id, v_full)
  end;
  reason := 'agents_full';
  detail := jsonb_build_object('agents', v_fits.full);
  return next;
end;
$$;

grant execute on function treadle.is_live(treadle.agents, timestamptz) to
treadle_observer, treadle_operator;
