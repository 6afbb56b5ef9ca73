-- pick_tasks: lock the best claimable tasks over some lanes, in order of effective priority.
--
-- One lane is one index scan; several are merged; with p_projects the projects take turns. What the
-- agent cannot afford is passed over.
--
-- Concurrency: rows locked by others are skipped, never waited for.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.pick_tasks(
  p_lanes     integer[],
  p_shifts    bigint[],
  p_limit     integer,
  p_budget    numeric default null,
  p_projects  uuid[] default null
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when cardinality(p_lanes) = 1
      then treadle.pick_from_lane(p_lanes[1], p_limit, p_budget)
    when p_projects is not null
      then treadle.pick_fair(p_lanes, p_shifts, p_projects, p_limit, p_budget)
    else treadle.pick_over_lanes(p_lanes, p_shifts, p_limit, p_budget)
  end;
end;
$$;

comment on function treadle.pick_tasks(integer[], bigint[], integer, numeric, uuid[]) is
'Internal: locks up to p_limit ready tasks of the lanes, best first, and returns where they are.';

revoke all on function treadle.pick_tasks(integer[], bigint[], integer, numeric, uuid[])
from public;
