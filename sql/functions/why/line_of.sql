-- line_of: the first ready tasks of a queue with all that their order depends on.
--
-- turn is what a project has under way for its share when it is the task's turn: in a fair queue
-- the least is next. Elsewhere all have the same.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.line_of(p_queue text, p_limit integer, p_now timestamptz)
returns table (id uuid, shut text, turn numeric, place bigint)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_ms   bigint := treadle.rank_ms(p_now);
  v_fair boolean := (select queues.fair from treadle.queues where queues.name = p_queue);
begin
  return query
  with line as materialized (
    select
      lanes.id,
      lanes.project_id,
      treadle.shift_at(lanes.ageing, v_ms) as shift,
      coalesce(
        (select found.sentence from treadle.why_lane(lanes, p_now) as found limit 1),
        -- What needs more than a limit lets through at all is behind a gate of its own.
        (
          select gates.reason
          from treadle.gates
          where gates.key = any (lanes.gates) and gates.closed_until > p_now
          limit 1
        )
      ) as shut
    from treadle.lanes
    where
      lanes.queue = p_queue
      and exists (
        select from treadle.tasks where tasks.lane_id = lanes.id and tasks.status = 'ready'
      )
  ),

  busy as materialized (
    select lanes.project_id, count(*) as tasks
    from treadle.tasks
    inner join treadle.lanes on tasks.lane_id = lanes.id
    where
      v_fair and tasks.queue = p_queue and tasks.status in ('claimed', 'running', 'validating')
    group by lanes.project_id
  )

  select
    head.id,
    line.shut,
    case
      when v_fair then (
        coalesce(busy.tasks, 0) + row_number() over (
          partition by line.project_id, line.shut is null
          order by head.rank - line.shift, head.id
        ) - 1
      ) / coalesce(projects.share, 1)
      else 0
    end,
    head.rank - line.shift
  from line
  cross join lateral (
    select tasks.id, tasks.rank
    from treadle.tasks
    where tasks.lane_id = line.id and tasks.status = 'ready'
    order by tasks.rank, tasks.id
    limit p_limit
  ) as head
  left join busy on line.project_id is not distinct from busy.project_id
  left join treadle.projects on line.project_id = projects.id;
end;
$$;

comment on function treadle.line_of(text, integer, timestamptz) is
'Internal: the heads of the lanes of a queue, what shuts each, and how they compare.';

revoke all on function treadle.line_of(text, integer, timestamptz) from public;
