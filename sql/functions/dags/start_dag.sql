-- start_dag: start an open DAG and release its tasks; returns how many it has.
--
-- A DAG that is already running is not changed. Tasks of queues with hold stay created until they
-- are released or dispatched.
--
-- Concurrency: see lock_whole_dag; tasks added in the meantime are released as well.
-- Lock order:  tasks, dags.
-- Raises:      TR001 invalid argument, TR205 unknown DAG.

create or replace function treadle.start_dag(p_dag uuid, p_actor text default null)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_dag  treadle.dags;
  v_rows tid[];
begin
  perform treadle.ensure_durable();
  -- A running DAG is not locked.
  select dags.* into v_dag from treadle.dags where dags.id = p_dag;
  if v_dag.status is distinct from 'open' and v_dag.id is not null then
    return v_dag.tasks;
  end if;
  v_dag := treadle.lock_whole_dag(p_dag);
  if v_dag.status <> 'open' then
    return v_dag.tasks;
  elsif v_dag.tasks = 0 then
    perform treadle.raise_error(
      format('DAG %s has no tasks', p_dag), jsonb_build_object('dag_id', p_dag),
      'To add one: select treadle.add_task(dag, ''{"type": "code"}'')'
    );
  end if;

  with freed as (
    update treadle.tasks
    set
      status = case
        when tasks.blocked_count > 0 or tasks.run_at > v_now then 'pending'
        else treadle.entry_status(tasks.concurrency_key, tasks.slot)
      end,
      slot = case
        when tasks.blocked_count = 0 and coalesce(tasks.run_at <= v_now, true)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
      end
    where
      tasks.dag_id = p_dag and tasks.status = 'created'
      and tasks.queue <> all (array(select queues.name from treadle.queues where queues.hold))
    returning tasks.ctid
  )

  select array_agg(freed.ctid) into v_rows from freed;
  perform treadle.notify_released(v_rows, 'hold_released');
  update treadle.dags set status = 'running', started_at = v_now where dags.id = p_dag;
  insert into treadle.events (at, kind, dag_id, actor, data)
  values (
    v_now, 'dag.started', p_dag, coalesce(p_actor, session_user),
    jsonb_build_object('name', v_dag.name, 'tasks', v_dag.tasks)
  );
  -- All tasks may have been cancelled before the start.
  perform treadle.update_dag_counters(array[p_dag], array[null::text], array[null::text], v_now);
  return v_dag.tasks;
end;
$$;

comment on function treadle.start_dag(uuid, text) is 'Start a DAG that was opened and filled.';

grant execute on function treadle.start_dag(uuid, text) to
treadle_producer, treadle_worker, treadle_operator;
