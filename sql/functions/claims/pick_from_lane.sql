-- pick_from_lane: lock the first ready tasks of one lane.
--
-- Concurrency: rows locked by others are skipped, never waited for.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.pick_from_lane(
  p_lane    integer,
  p_limit   integer,
  p_budget  numeric default null
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_budget numeric := coalesce(p_budget, 'Infinity');
begin
  return array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.lane_id = p_lane
      and tasks.status = 'ready'
      and coalesce(tasks.max_cost_usd - tasks.cost_usd, 0) <= v_budget
    order by tasks.rank, tasks.id
    limit p_limit
    for update skip locked
  );
end;
$$;

comment on function treadle.pick_from_lane(integer, integer, numeric) is
'Internal: locks up to p_limit ready tasks of a lane in order of rank.';

revoke all on function treadle.pick_from_lane(integer, integer, numeric) from public;
