-- fire_schedule: deal with nominal times of a schedule that have come, each exactly once.
--
-- select * from treadle.fire_schedule(id, 1, array['2026-03-29 01:00Z'], '2026-03-30 00:30Z');
--
-- A scheduler proposes: the times that are due, the first of them next_at, and the one that follows
-- the last. What was worked out before the schedule changed, or before somebody else dealt with it,
-- is no longer true: then nothing happens and nothing is returned. Without due times only the
-- following one is stored. The catch-up policy says which of the times get work, see run_plan. What
-- is for queue `push` comes with the depth of that queue, and nothing else does.
--
-- Concurrency: one at a time for each schedule; one that somebody else holds is left alone. A time
--              and its task are stored in one transaction; a second row for it is impossible.
-- Lock order:  schedules, then as enqueue_batch, create_dag and cancel_tasks. Nobody who holds
--              one of those waits for a schedule.
-- Raises:      nothing that a template or a full queue is the reason of: that is a status. 55P03
--              when a lock is not to be had soon: another tick does it.

create or replace function treadle.fire_schedule(
  p_id         uuid,
  p_revision   bigint,
  p_due        timestamptz[],
  p_following  timestamptz
)
returns table (
  nominal_at timestamptz,
  status text,
  task_id uuid,
  dag_id uuid,
  error text,
  depth integer
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
-- Well below deadlock_timeout: who holds what it wants is not made to give way.
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_now      timestamptz;
  v_schedule treadle.schedules;
  v_plan     record;
  v_run      treadle.schedule_runs;
begin
  perform treadle.keep_durable();
  select schedules.* into v_schedule
  from treadle.schedules
  where schedules.id = p_id
  for no key update skip locked;
  v_now := treadle.clock();
  if v_schedule.id is null
    or v_schedule.paused_at is not null
    or v_schedule.revision <> p_revision
    or v_schedule.next_at is distinct from p_due[1]
    or exists (select from unnest(p_due) as due (at) where due.at > v_now)
    or p_following <= p_due[cardinality(p_due)] then
    return;
  end if;

  for v_plan in
    select planned.* from treadle.run_plan(v_schedule, p_due, v_now) as planned
    order by planned.nominal_at
  loop
    v_run := treadle.make_run(v_schedule, v_plan.nominal_at, v_plan.missed, v_now);
    v_run.missed_until := v_plan.missed_until;
    if treadle.record_run(v_run) then
      v_schedule.last_status := v_run.status;
      v_schedule.last_error := v_run.error;
      v_schedule.last_task := coalesce(v_run.task_id, v_schedule.last_task);
      v_schedule.last_dag := coalesce(v_run.dag_id, v_schedule.last_dag);
      return query
      select
        v_run.nominal_at, v_run.status, v_run.task_id, v_run.dag_id, v_run.error,
        case when v_schedule.template #>> '{task,queue}' = 'push' then treadle.push_depth() end;
    end if;
  end loop;

  update treadle.schedules
  set
    next_at = coalesce(p_following, 'infinity'),
    last_at = coalesce(p_due[cardinality(p_due)], schedules.last_at),
    last_status = v_schedule.last_status,
    last_error = v_schedule.last_error,
    last_task = v_schedule.last_task,
    last_dag = v_schedule.last_dag
  where schedules.id = p_id;
end;
$$;

comment on function treadle.fire_schedule(uuid, bigint, timestamptz[], timestamptz) is
'Deal with the times of a schedule that have come; returns what became of each.';

revoke all on function treadle.fire_schedule(uuid, bigint, timestamptz[], timestamptz) from public;
grant execute on function treadle.fire_schedule(uuid, bigint, timestamptz[], timestamptz) to
treadle_worker;
