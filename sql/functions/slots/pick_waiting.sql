-- pick_waiting: lock the best tasks that wait for a slot of a key, in order of effective priority.
--
-- The heads of each lane are looked up by index; then ranks are made comparable. A few more than
-- wanted, for those that others have locked.
--
-- Concurrency: rows locked by others are skipped, never waited for.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.pick_waiting(p_key text, p_limit integer)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
declare
  v_ms    bigint := treadle.rank_ms(treadle.clock());
  v_lanes integer[];
  v_ids   uuid[];
begin
  with recursive found (lane_id) as (
    -- Not min(): where few rows are believed to be there, all would be read for it.
    (
      select tasks.lane_id
      from treadle.tasks
      where tasks.concurrency_key = p_key and tasks.slot = 'waiting'
      order by tasks.lane_id
      limit 1
    )
    union all
    select (
      select tasks.lane_id
      from treadle.tasks
      where
        tasks.concurrency_key = p_key and tasks.slot = 'waiting' and tasks.lane_id > found.lane_id
      order by tasks.lane_id
      limit 1
    )
    from found
    where found.lane_id is not null
  )

  select array_agg(found.lane_id) into v_lanes from found where found.lane_id is not null;

  v_ids := array(
    select head.id
    from treadle.lanes
    cross join lateral (
      select tasks.id, tasks.rank
      from treadle.tasks
      where
        tasks.concurrency_key = p_key and tasks.slot = 'waiting' and tasks.lane_id = lanes.id
      order by tasks.rank, tasks.id
      limit p_limit + 20
    ) as head
    where lanes.id = any (v_lanes)
    order by head.rank - treadle.shift_at(lanes.ageing, v_ms), head.id
    limit p_limit + 20
  );

  return array(
    select tasks.ctid
    from treadle.tasks
    inner join unnest(v_ids) with ordinality as best (id, at) on tasks.id = best.id
    -- Not to be found by an index: it would read all that wait.
    where coalesce(tasks.slot, '') = 'waiting'
    order by best.at
    limit p_limit
    for update of tasks skip locked
  );
end;
$$;

comment on function treadle.pick_waiting(text, integer) is
'Internal: locks up to p_limit tasks that wait for a slot, best first, and returns where they are.';

revoke all on function treadle.pick_waiting(text, integer) from public;
