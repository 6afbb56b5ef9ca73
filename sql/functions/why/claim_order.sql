-- claim_order: list the ready tasks of a queue in the order in which they would be claimed.
--
-- select place, id, type, effective_priority, closed_reason from treadle.claim_order('default',
-- 20);
--
-- Tasks of open lanes come first. The column closed_reason says why a lane is closed to all agents.
-- In a fair queue projects take turns; among projects with equally many running tasks the choice is
-- random, which this list does not show.
--
-- Concurrency: reads only, from one snapshot.
-- Raises:      TR001 invalid argument, TR202 unknown queue.

-- claim_candidates: return the first ready tasks of a queue with everything that decides their
-- order.
--
-- turn is the number of running tasks of the project relative to its share when the task would be
-- claimed: in a fair queue the lowest is next. In other queues it is the same for all tasks.
create or replace function treadle.claim_candidates(
  p_queue text, p_limit integer, p_now timestamptz
)
returns table (id uuid, closed_reason text, turn numeric, place bigint)
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
      treadle.ageing_offset_at(lanes.ageing, v_ms) as shift,
      coalesce(
        (select found.sentence from treadle.why_lane(lanes, p_now) as found limit 1),
        -- A task that needs more than a whole limit is behind a gate of its own.
        (
          select gates.reason
          from treadle.gates
          where gates.key = any (lanes.gates) and gates.closed_until > p_now
          limit 1
        )
      ) as closed_reason
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
    line.closed_reason,
    case
      when v_fair then (
        coalesce(busy.tasks, 0) + row_number() over (
          partition by line.project_id, line.closed_reason is null
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

create or replace function treadle.claim_order(p_queue text, p_limit integer default 20)
returns table (
  place integer, id uuid, type text, priority smallint, effective_priority numeric,
  since timestamptz, title text, project text, closed_reason text
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.raise_error(
      format('limit must be 1 to 10000, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit')
    );
  end if;
  if not exists (select from treadle.queues where queues.name = p_queue) then
    perform treadle.check_names(p_queue, null);
  end if;

  return query
  select
    line.place::integer,
    tasks.id,
    tasks.type,
    tasks.priority,
    line.effective_priority,
    greatest(tasks.created_at, tasks.run_at),
    tasks.title,
    projects.name,
    line.closed_reason
  from (
    select
      heads.id,
      heads.closed_reason,
      row_number() over (
        order by heads.closed_reason is not null, heads.turn, heads.place, heads.id
      ) as place,
      round(heads.place / 1000000.0, 3) as effective_priority
    from treadle.claim_candidates(p_queue, p_limit, treadle.clock()) as heads
    order by 3
    limit p_limit
  ) as line
  inner join treadle.tasks on line.id = tasks.id
  left join treadle.projects on tasks.project_id = projects.id
  order by line.place;
end;
$$;

comment on function treadle.claim_order(text, integer) is
'The first ready tasks of a queue in claim order, and why the lanes of others are closed.';

grant execute on function treadle.claim_order(text, integer) to
treadle_observer, treadle_operator;
