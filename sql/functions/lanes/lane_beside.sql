-- lane_beside: the lane that differs from another one in its urgency alone, made on first use.
--
-- Concurrency: see find_lane.
-- Lock order:  lanes.
-- Raises:      nothing.

create or replace function treadle.lane_beside(p_lane integer, p_urgency bigint)
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

comment on function treadle.lane_beside(integer, bigint) is
'Internal: finds or makes the lane of the same tasks with another urgency.';

revoke all on function treadle.lane_beside(integer, bigint) from public;
