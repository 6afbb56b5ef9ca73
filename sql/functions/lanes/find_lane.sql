-- find_lane: the lane that has all of these in common, made on first use.
--
-- Without p_make nothing is made, and nobody is waited for: null where there is none yet.
--
-- Concurrency: two sessions that make the same lane: the second waits for the first, then finds it.
-- Lock order:  lanes.
-- Raises:      TR202 unknown queue, TR203 unknown type.

create or replace function treadle.find_lane(p_lane treadle.lanes, p_make boolean default true)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane integer;
begin
  loop
    select lanes.id
    into v_lane
    from treadle.lanes
    where
      lanes.queue = p_lane.queue
      and lanes.type = p_lane.type
      and lanes.capabilities = p_lane.capabilities
      and lanes.agent_id is not distinct from p_lane.agent_id
      and lanes.ageing = p_lane.ageing
      and lanes.urgency = p_lane.urgency
      and lanes.gates = p_lane.gates
      and lanes.project_id is not distinct from p_lane.project_id;

    if found or not p_make then
      return v_lane;
    end if;

    perform treadle.check_names(p_lane.queue, p_lane.type);

    insert into treadle.lanes (
      queue, type, capabilities, agent_id, ageing, urgency, gates, project_id
    )
    values (
      p_lane.queue, p_lane.type, p_lane.capabilities, p_lane.agent_id, p_lane.ageing,
      p_lane.urgency, p_lane.gates, p_lane.project_id
    )
    on conflict do nothing
    returning lanes.id into v_lane;

    if found then
      return v_lane;
    end if;
  end loop;
end;
$$;

comment on function treadle.find_lane(treadle.lanes, boolean) is
'Internal: finds or makes a lane; its id is not looked at.';

revoke all on function treadle.find_lane(treadle.lanes, boolean) from public;
