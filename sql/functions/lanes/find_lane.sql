-- find_lane: find the lane with these properties, and create it on first use.
--
-- Without p_make no lane is created and no lock is waited for; the result is null if there is none.
--
-- Concurrency: of two sessions that create the same lane, the second waits for the first and finds
-- it.
-- Lock order:  lanes.
-- Raises:      TR202 unknown queue, TR203 unknown type.

-- sorted_names: return names sorted and without duplicates, so that equal sets are equal arrays.
--
-- Written in plpgsql, which caches its plan.
create or replace function treadle.sorted_names(p_names text[])
returns text[]
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(pg_catalog.cardinality(p_names), 0) = 0 then
    return '{}';
  end if;
  return array(select distinct names.name from unnest(p_names) as names (name) order by 1);
end;
$$;

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

-- lane_with_gate: find or create the lane that has one more gate than another lane.
--
-- Concurrency: see find_lane.
-- Lock order:  lanes.
create or replace function treadle.lane_with_gate(
  p_lane  treadle.lanes,
  p_key   text,
  p_make  boolean default false
)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane treadle.lanes := p_lane;
begin
  v_lane.gates := treadle.sorted_names(v_lane.gates || p_key);
  return treadle.find_lane(v_lane, p_make);
end;
$$;

-- lane_with_urgency: find or create the lane that differs from another one only in its urgency.
--
-- Concurrency: see find_lane.
-- Lock order:  lanes.
create or replace function treadle.lane_with_urgency(p_lane integer, p_urgency bigint)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane treadle.lanes;
begin
  select lanes.* into v_lane from treadle.lanes where lanes.id = p_lane;
  if v_lane.urgency = p_urgency then
    return p_lane;
  end if;
  v_lane.ageing := v_lane.ageing - v_lane.urgency + p_urgency;
  v_lane.urgency := p_urgency;
  return treadle.find_lane(v_lane);
end;
$$;
