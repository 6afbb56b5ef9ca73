-- pick_over_lanes: lock the best ready tasks over several lanes: an exact merge.
--
-- Take from the lane with the best head for as long as it stays ahead of the next lane's head, then
-- look again.
--
-- Concurrency: rows locked by others are skipped, never waited for.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.pick_over_lanes(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_limit   integer,
  p_budget  numeric
)
returns tid[]
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_picked tid[] := '{}';
  v_lanes  integer[];
  v_shifts bigint[];
  v_heads  bigint[];
  v_bound  bigint;
begin
  select
    array_agg(lane.id order by head.rank - lane.shift),
    array_agg(lane.shift order by head.rank - lane.shift),
    array_agg(head.rank - lane.shift order by head.rank - lane.shift)
  into v_lanes, v_shifts, v_heads
  from unnest(p_lanes, p_shifts) as lane (id, shift)
  cross join lateral (
    select tasks.rank
    from treadle.tasks
    where tasks.lane_id = lane.id and tasks.status = 'ready'
    order by tasks.rank, tasks.id
    limit 1
  ) as head;

  while cardinality(v_lanes) > 0 and cardinality(v_picked) < p_limit loop
    v_bound := v_heads[2] + v_shifts[1];
    -- From the head on: what lies before it and is still ready is what we have just locked.
    v_picked := v_picked || treadle.pick_from_lane(
      v_lanes[1], p_limit - cardinality(v_picked), p_budget, v_heads[1] + v_shifts[1], v_bound
    );

    -- What is left of this lane up to the bound is ours or locked by others: go on behind it.
    select
      array_agg(lane.id order by lane.head),
      array_agg(lane.shift order by lane.head),
      array_agg(lane.head order by lane.head)
    into v_lanes, v_shifts, v_heads
    from (
      select ahead.id, ahead.shift, ahead.head
      from unnest(v_lanes[2:], v_shifts[2:], v_heads[2:]) as ahead (id, shift, head)
      union all
      select v_lanes[1], v_shifts[1], next.head
      from (
        select tasks.rank - v_shifts[1] as head
        from treadle.tasks
        -- No bound: no other lane is left, and this one gave all it has.
        where tasks.lane_id = v_lanes[1] and tasks.status = 'ready' and tasks.rank > v_bound
        order by tasks.rank, tasks.id
        limit 1
      ) as next
    ) as lane;
  end loop;

  return v_picked;
end;
$$;

comment on function treadle.pick_over_lanes(integer[], bigint[], integer, numeric) is
'Internal: locks up to p_limit ready tasks of several lanes, best first.';

revoke all on function treadle.pick_over_lanes(integer[], bigint[], integer, numeric) from public;
