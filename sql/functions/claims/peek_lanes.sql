-- peek_lanes: the best ready tasks over some lanes, best first; nothing is locked.
--
-- A few rows of each lane are read and merged. Only a lane of which all rows came through can have
-- more among the best: of those, twice as many are read next. A turn reads at most p_limit rows
-- twice over, because the lanes it goes on with hold that many at most.
--
-- p_ranks and p_tasks say behind which task of each lane to begin.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.peek_lanes(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_ranks   bigint[],
  p_tasks   uuid[],
  p_limit   integer,
  p_budget  numeric,
  out lanes   integer[],
  out shifts  bigint[],
  out ranks   bigint[],
  out tasks   uuid[],
  out rows    tid[]
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_budget numeric := coalesce(p_budget, 'Infinity');
  v_depth  integer := ceil(2.0 * p_limit / cardinality(p_lanes));
  v_lanes  integer[] := p_lanes;
  v_shifts bigint[] := p_shifts;
  v_ranks  bigint[] := p_ranks;
  v_tasks  uuid[] := p_tasks;
begin
  loop
    v_depth := least(v_depth, p_limit);
    select
      array_agg(best.lane), array_agg(best.shift), array_agg(best.rank),
      array_agg(best.task), array_agg(best.row),
      -- Behind the last of the best there is nothing to look for.
      array_agg(best.lane) filter (where best.more and best.at < p_limit),
      array_agg(best.shift) filter (where best.more and best.at < p_limit),
      array_agg(best.rank) filter (where best.more and best.at < p_limit),
      array_agg(best.task) filter (where best.more and best.at < p_limit)
    into lanes, shifts, ranks, tasks, rows, v_lanes, v_shifts, v_ranks, v_tasks
    from (
      select every.*, row_number() over (order by every.rank - every.shift, every.task) as at
      from (
        select given.lane, given.shift, given.rank, given.task, given.row, false as more
        from unnest(lanes, shifts, ranks, tasks, rows) as given (lane, shift, rank, task, row)
        union all
        select lane.id, lane.shift, ready.rank, ready.id, ready.ctid, ready.at = v_depth
        from unnest(v_lanes, v_shifts, v_ranks, v_tasks) as lane (id, shift, rank, task)
        cross join lateral (
          select
            head.ctid, head.rank, head.id,
            row_number() over (order by head.rank, head.id) as at
          from treadle.tasks as head
          where
            head.lane_id = lane.id
            and head.status = 'ready'
            and (head.rank, head.id) > (lane.rank, lane.task)
            and coalesce(head.max_cost_usd - head.cost_usd, 0) <= v_budget
          order by head.rank, head.id
          limit v_depth
        ) as ready
      ) as every
      order by every.rank - every.shift, every.task
      limit p_limit
    ) as best;
    exit when v_lanes is null;
    v_depth := 2 * v_depth;
  end loop;
end;
$$;

comment on function treadle.peek_lanes(
  integer[], bigint[], bigint[], uuid[], integer, numeric
) is 'Internal: finds the best ready tasks of several lanes, in order.';

revoke all on function treadle.peek_lanes(
  integer[], bigint[], bigint[], uuid[], integer, numeric
) from public;
