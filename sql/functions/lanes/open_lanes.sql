-- open_lanes: the lanes from which an agent may take tasks now. Every gate is here.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR202 unknown queue.

create or replace function treadle.open_lanes(
  p_agent   treadle.agents,
  p_queues  text[],
  p_types   text[],
  p_now     timestamptz,
  out lanes   integer[],
  out shifts  bigint[]
)
language plpgsql
stable
set search_path = ''
as $$
declare
  v_ms      bigint := treadle.rank_ms(p_now);
  v_unknown text;
begin
  select array_agg(lane.id), array_agg(treadle.shift_at(lane.ageing, v_ms))
  into lanes, shifts
  from treadle.lanes as lane
  inner join treadle.queues on lane.queue = queues.name
  where
    lane.queue = any (p_queues)
    and queues.paused_at is null
    and (p_types is null or lane.type = any (p_types))
    and lane.capabilities <@ p_agent.capabilities
    and (lane.agent_id is null or lane.agent_id = p_agent.id);

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

comment on function treadle.open_lanes(treadle.agents, text[], text[], timestamptz) is
'Internal: lanes that an agent may claim from, with the shift that makes their ranks comparable.';

revoke all on function treadle.open_lanes(treadle.agents, text[], text[], timestamptz) from public;
