-- satisfy_dependencies: mark the edges to ended tasks as met, and release tasks that wait for
-- nothing else.
--
-- Completed tasks release all their dependents, cancelled tasks those over optional edges, and dead
-- letters those over edges with the policy continue. Each edge is counted once; it stores the time.
--
-- Concurrency: the caller has locked the tasks and their known dependents. The edges are read here,
-- after the tokens were checked, so that an edge added in the meantime is not missed.
-- Lock order:  tasks, by id.

-- is_free: return whether a waiting task can be released once a number of its edges are met.
create or replace function treadle.is_free(
  p_task   treadle.tasks,
  p_edges  integer,
  p_now    timestamptz
)
returns boolean
language sql
immutable
parallel safe
return (
  p_task.status = 'pending'
  and p_task.blocked_count = p_edges
  -- A parked task is released when its budget has room.
  and p_task.budget_id is null
  and coalesce(p_task.run_at <= p_now, true)
);

create or replace function treadle.satisfy_dependencies(p_ids uuid[], p_end text, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_ids    uuid[];
  v_counts integer[];
  v_rows   tid[];
  v_due_at timestamptz;
begin
  with met as (
    update treadle.dependencies
    set met_at = p_now
    where
      dependencies.depends_on = any (p_ids)
      and dependencies.met_at is null
      and (
        p_end = 'completed'
        or (p_end = 'cancelled' and dependencies.optional)
        or (p_end = 'dead_lettered' and dependencies.on_dead_letter = 'continue')
      )
    returning dependencies.task_id
  ),

  counted as (
    select met.task_id, count(*)::integer as edges from met group by met.task_id
  )

  select array_agg(counted.task_id), array_agg(counted.edges)
  into v_ids, v_counts
  from counted;

  if v_ids is null then
    return;
  end if;

  perform treadle.lock_tasks(v_ids);
  with freed as (
    update treadle.tasks
    set
      blocked_count = tasks.blocked_count - counted.edges,
      status = case
        when treadle.is_free(tasks, counted.edges, p_now)
          then treadle.entry_status(tasks.concurrency_key, tasks.slot)
        else tasks.status
      end,
      slot = case
        when treadle.is_free(tasks, counted.edges, p_now)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
        else tasks.slot
      end
    from unnest(v_ids, v_counts) as counted (task_id, edges)
    where tasks.id = counted.task_id
    returning tasks.ctid, tasks.status, tasks.run_at, tasks.blocked_count, tasks.slot
  )

  select
    array_agg(freed.ctid) filter (where freed.status = 'ready' or freed.slot = 'waiting'),
    min(freed.run_at) filter (where freed.status = 'pending' and freed.blocked_count = 0)
  into v_rows, v_due_at
  from freed;

  perform treadle.notify_released(v_rows, 'readied');
  perform treadle.notify_promoter(v_due_at);
end;
$$;
