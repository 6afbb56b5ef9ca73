-- why_lane: what shuts a lane to all agents, or leaves it without any.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_lane(p_lane treadle.lanes, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_lane.queue = 'work' then
    sentence := 'work items are handed out by their dispatcher: no claim takes them';
    reason := 'work';
    detail := jsonb_build_object('queue', p_lane.queue);
    return next;
    return;
  end if;
  return query select * from treadle.why_shut(p_lane);
  return query select * from treadle.why_breaker(p_lane, p_now);
  return query select * from treadle.why_gates(p_lane, p_now);
  return query select * from treadle.why_agents(p_lane, p_now);
end;
$$;

comment on function treadle.why_lane(treadle.lanes, timestamptz) is
'Internal: pauses, breakers, gates and missing agents that keep all tasks of a lane back.';

revoke all on function treadle.why_lane(treadle.lanes, timestamptz) from public;
