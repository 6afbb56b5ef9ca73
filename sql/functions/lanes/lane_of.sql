-- lane_of: the lane of a task, made on first use.
--
-- Concurrency: two sessions that make the same lane: the second waits for the first, then finds it.
-- Lock order:  lanes.
-- Raises:      TR202 unknown queue, TR203 unknown type.

create or replace function treadle.lane_of(
  p_queue         text,
  p_type          text,
  p_capabilities  text[],
  p_agent         text,
  p_ageing        bigint
)
returns integer
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_needs text[];
  v_lane  integer;
begin
  v_needs := case
    when coalesce(cardinality(p_capabilities), 0) = 0 then '{}'
    else array(select distinct needs.name from unnest(p_capabilities) as needs (name) order by 1)
  end;

  loop
    select lanes.id
    into v_lane
    from treadle.lanes
    where
      lanes.queue = p_queue
      and lanes.type = p_type
      and lanes.capabilities = v_needs
      and lanes.agent_id is not distinct from p_agent
      and lanes.ageing = p_ageing;

    if found then
      return v_lane;
    end if;

    perform treadle.check_names(p_queue, p_type);

    insert into treadle.lanes (queue, type, capabilities, agent_id, ageing)
    values (p_queue, p_type, v_needs, p_agent, p_ageing)
    on conflict do nothing
    returning lanes.id into v_lane;

    if found then
      return v_lane;
    end if;
  end loop;
end;
$$;

comment on function treadle.lane_of(text, text, text[], text, bigint) is
'Internal: finds or makes the lane that a task belongs to.';

revoke all on function treadle.lane_of(text, text, text[], text, bigint) from public;
