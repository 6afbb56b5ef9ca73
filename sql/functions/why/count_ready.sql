-- count_ready: how many ready tasks some lanes have, all of them or those ahead of one.
--
-- Counted up to 10001: a person needs no more.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.count_ready(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_budget  numeric,
  p_task    treadle.tasks default null
)
returns integer
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_shift bigint := p_shifts[array_position(p_lanes, p_task.lane_id)];
begin
  return (
    select count(*)
    from (
      select
      from unnest(p_lanes, p_shifts) as lane (id, shift)
      cross join lateral (
        select
        from treadle.tasks
        where
          tasks.lane_id = lane.id
          and tasks.status = 'ready'
          and tasks.rank <= coalesce(p_task.rank - v_shift + lane.shift, 9223372036854775807)
          and (
            p_task.id is null
            or tasks.rank < p_task.rank - v_shift + lane.shift
            or tasks.id < p_task.id
          )
          and coalesce(tasks.max_cost_usd - tasks.cost_usd, 0) <= coalesce(p_budget, 'Infinity')
        limit 10001
      ) as counted
      limit 10001
    ) as ready
  );
end;
$$;

comment on function treadle.count_ready(integer[], bigint[], numeric, treadle.tasks) is
'Internal: ready tasks of lanes that cost no more than p_budget; with a task, those before it.';

revoke all on function treadle.count_ready(integer[], bigint[], numeric, treadle.tasks)
from public;
