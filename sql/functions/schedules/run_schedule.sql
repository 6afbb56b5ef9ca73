-- run_schedule: run a schedule now, in addition to its times.
--
-- select * from treadle.run_schedule('nightly');
--
-- The run is recorded without a nominal time, and the next time stays. A paused schedule can be
-- run, and the overlap policy is not applied, because a person has decided. If its queue is full,
-- the call leaves nothing behind; see record_skipped_run.
--
-- Concurrency: part of the caller's transaction.
-- Lock order:  schedules; as enqueue_batch or create_dag; then the history.
-- Raises:      TR211 unknown schedule, TR105 queue full, and what enqueueing raises.

create or replace function treadle.run_schedule(
  p_name       text,
  p_actor      text default null,
  out task_id  uuid,
  out dag_id   uuid,
  out created  boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_schedule treadle.schedules := treadle.find_schedule(p_name);
  v_now      timestamptz := treadle.clock();
  v_status   text;
begin
  v_schedule.jitter_s := 0;
  select made.task_id, made.dag_id, made.created
  into task_id, dag_id, created
  from treadle.enqueue_template(v_schedule, v_now) as made;
  v_status := case when created then 'queued' else 'skipped_duplicate' end;

  insert into treadle.schedule_runs (
    schedule_id, schedule, fired_at, status, task_id, dag_id, actor
  )
  values (
    v_schedule.id, v_schedule.name, v_now, v_status,
    case when created then task_id end, case when created then dag_id end,
    coalesce(p_actor, session_user)
  );
  update treadle.schedules
  set
    last_at = v_now,
    last_status = v_status,
    last_error = null,
    last_task = coalesce(run_schedule.task_id, schedules.last_task),
    last_dag = coalesce(run_schedule.dag_id, schedules.last_dag)
  where schedules.id = v_schedule.id;
  insert into treadle.events (at, kind, task_id, dag_id, actor, data)
  values (
    v_now, 'schedule.run_manually', task_id, dag_id, coalesce(p_actor, session_user),
    jsonb_build_object('schedule', v_schedule.name)
  );
end;
$$;

comment on function treadle.run_schedule(text, text) is
'Run a schedule now: enqueue its task or DAG as an extra run that is recorded.';

grant execute on function treadle.run_schedule(text, text) to treadle_operator;
