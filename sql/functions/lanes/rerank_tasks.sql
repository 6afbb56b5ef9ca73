-- rerank_tasks: update the rank of waiting tasks whose deadline has entered its next step.
--
-- A row that cannot be moved does not stop the others. It is reported in problem; pass its id in
-- p_skip to leave it out. If this runs late, a task keeps gaining at its old rate.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks, lanes.

-- rerank_rows: update tasks to the rank that their deadlines require now.
--
-- The reduction of the old step is undone first, so that the age and the rate of the task stay.
-- Lanes are looked up once for all tasks that move in the same way.
--
-- Concurrency: the caller has locked the rows; may create lanes, see lane_with_urgency.
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
      treadle.current_deadline_step(lanes.urgency, tasks.deadline_at, tasks.rerank_at) as placed
    from treadle.tasks
    inner join treadle.lanes on tasks.lane_id = lanes.id
    where tasks.ctid = any (p_rows)
  ),

  moves as materialized (
    select alike.lane_id, alike.step,
      treadle.lane_with_urgency(alike.lane_id, treadle.deadline_rate(alike.step)) as lane
    -- In the same order everywhere, so that two sessions creating the same lanes do not deadlock.
    from (select distinct due.lane_id, due.step from due order by 1, 2) as alike
  )

  select
    array_agg(due.ctid), array_agg(due.step), array_agg(moves.lane),
    array_agg(
      treadle.deadline_rank_offset(due.deadline_at, due.step)
      - treadle.deadline_rank_offset(due.deadline_at, due.placed)
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
    -- One of them failed: try each one separately, so that the others succeed.
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
'Update the rank of tasks whose deadline is closer; returns their ids.';

grant execute on function treadle.rerank_tasks(integer, uuid[]) to treadle_worker;
