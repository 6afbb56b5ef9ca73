-- rerank_tasks: give waiting tasks a new rank whose deadline has come nearer by a step.
--
-- A row that cannot be moved does not stop the others: it is reported in problem, and left out when
-- its id is passed in p_skip. While this is late, a task goes on gaining at its old pace.
--
-- Concurrency: rows locked by others are skipped.
-- Lock order:  tasks, lanes.

-- rerank_rows: give tasks the rank that their deadlines mean now.
--
-- What the old step took off is given back first, so the age and the rate stay those of the task.
-- Lanes are found once for all tasks that move alike.
--
-- Concurrency: the caller holds the rows; may make lanes, see lane_beside.
-- Lock order:  lanes (after tasks).
create or replace function treadle.rerank_rows(p_rows tid[], p_now timestamptz)
returns setof uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_rows   tid[];
  v_steps  integer[];
  v_lanes  integer[];
  v_lifts  bigint[];
begin
  with due as materialized (
    select
      tasks.ctid,
      tasks.lane_id,
      tasks.deadline_at,
      treadle.deadline_step(tasks.deadline_at, p_now) as step,
      treadle.placed_step(lanes.urgency, tasks.deadline_at, tasks.rerank_at) as placed
    from treadle.tasks
    inner join treadle.lanes on tasks.lane_id = lanes.id
    where tasks.ctid = any (p_rows)
  ),

  moves as materialized (
    select alike.lane_id, alike.step,
      treadle.lane_beside(alike.lane_id, treadle.deadline_rate(alike.step)) as lane
    -- In the same order for all: two that make the same lanes do not block each other.
    from (select distinct due.lane_id, due.step from due order by 1, 2) as alike
  )

  select
    array_agg(due.ctid), array_agg(due.step), array_agg(moves.lane),
    array_agg(
      treadle.deadline_lift(due.deadline_at, due.step)
      - treadle.deadline_lift(due.deadline_at, due.placed)
    )
  into v_rows, v_steps, v_lanes, v_lifts
  from due
  inner join moves on due.lane_id = moves.lane_id and due.step = moves.step;

  return query
  update treadle.tasks
  set
    lane_id = v_lanes[array_position(v_rows, tasks.ctid)],
    rank = tasks.rank - v_lifts[array_position(v_rows, tasks.ctid)],
    rerank_at = treadle.deadline_at_step(
      tasks.deadline_at, v_steps[array_position(v_rows, tasks.ctid)] + 1
    )
  where tasks.ctid = any (v_rows)
  returning tasks.id;
end;
$$;

create or replace function treadle.rerank_tasks(
  p_limit  integer default 1000,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[] := array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.rerank_at <= v_now
      and tasks.status in ('created', 'pending', 'ready', 'retrying', 'blocked')
      and tasks.id <> all (p_skip)
    order by tasks.rerank_at
    limit p_limit
    for update skip locked
  );
begin
  if v_rows = '{}' then
    return;
  end if;
  begin
    return query select moved.id, null from treadle.rerank_rows(v_rows, v_now) as moved (id);
  exception when others then
    -- One of them is bad: each on its own, so that the rest go through.
    for v_at in 1..cardinality(v_rows) loop
      begin
        return query
        select moved.id, null
        from treadle.rerank_rows(v_rows[v_at:v_at], v_now) as moved (id);
      exception when others then
        return query
        select tasks.id, sqlerrm from treadle.tasks where tasks.ctid = v_rows[v_at];
      end;
    end loop;
  end;
end;
$$;

comment on function treadle.rerank_tasks(integer, uuid[]) is
'Give tasks whose deadline has come nearer a new rank; returns their ids.';

grant execute on function treadle.rerank_tasks(integer, uuid[]) to treadle_worker;
