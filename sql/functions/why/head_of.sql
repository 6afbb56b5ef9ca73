-- head_of: the ready task that is first over some lanes.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.head_of(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_budget  numeric,
  p_skip    uuid[]
)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (
    select head.id
    from unnest(p_lanes, p_shifts) as lane (id, shift)
    cross join lateral (
      select tasks.id, tasks.rank
      from treadle.tasks
      where
        tasks.lane_id = lane.id
        and tasks.status = 'ready'
        and coalesce(tasks.max_cost_usd - tasks.cost_usd, 0) <= coalesce(p_budget, 'Infinity')
        and tasks.id <> all (p_skip)
      order by tasks.rank, tasks.id
      limit 1
    ) as head
    order by head.rank - lane.shift, head.id
    limit 1
  );
end;
$$;

comment on function treadle.head_of(integer[], bigint[], numeric, uuid[]) is
'Internal: the best ready task of lanes that costs no more than p_budget and is not in p_skip.';

revoke all on function treadle.head_of(integer[], bigint[], numeric, uuid[]) from public;
