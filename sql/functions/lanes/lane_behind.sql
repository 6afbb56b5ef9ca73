-- lane_behind: the lane that is like another but for one more gate.
--
-- Concurrency: see find_lane.
-- Lock order:  lanes.
-- Raises:      nothing.

create or replace function treadle.lane_behind(
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
  v_lane.gates := treadle.sorted(v_lane.gates || p_key);
  return treadle.find_lane(v_lane, p_make);
end;
$$;

comment on function treadle.lane_behind(treadle.lanes, text, boolean) is
'Internal: finds, or with p_make makes, the lane behind a further gate.';

revoke all on function treadle.lane_behind(treadle.lanes, text, boolean) from public;
