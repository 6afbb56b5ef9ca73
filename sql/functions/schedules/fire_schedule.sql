-- fire_schedule: handle the due nominal times of a schedule, each exactly once.
--
-- select * from treadle.fire_schedule(id, 1, array['2026-03-29 01:00Z'], '2026-03-30 00:30Z');
--
-- A scheduler proposes the due times, of which the first is next_at, and the time after the last.
-- If the schedule has changed, or another scheduler has handled it, the proposal is outdated:
-- nothing happens and nothing is returned. Without due times only the next time is stored. The
-- catch-up policy decides which times are run, see run_plan. For a dispatch queue the result
-- includes the depth of that queue.
--
-- Concurrency: one session at a time per schedule; a locked schedule is skipped. A time and its
-- task are stored in one transaction; the key prevents a second row for the same time.
-- Lock order:  schedules, then as enqueue_batch, create_dag and cancel_tasks. No session that holds
-- one of those waits for a schedule.
-- Raises:      errors of the template and full queues are not raised but recorded as a status.
-- 55P03 if a lock is not available soon; the next tick tries again.

-- was_run: return whether a nominal time has been handled.
--
-- Concurrency: exact while the caller holds the lock on the schedule.
create or replace function treadle.was_run(p_schedule uuid, p_nominal timestamptz)
returns boolean
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select
    exists (
      select from treadle.schedule_runs
      where
        schedule_runs.schedule_id = p_schedule and schedule_runs.nominal_at = p_nominal
    )
$$;

-- run_plan: decide which due times are run, by the catch-up policy of the schedule.
--
-- A time is missed if no scheduler handled it within grace_s. Policy all: each time is run, in
-- order. one: if any time was missed, the last time is run for all of them. skip: missed times are
-- not run, the others are. Times that are not run share one row, from the first to the last.
create or replace function treadle.run_plan(
  p_schedule  treadle.schedules,
  p_due       timestamptz[],
  p_now       timestamptz
)
returns table (nominal_at timestamptz, missed boolean, missed_until timestamptz)
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  with due as (
    select
      given.at,
      case p_schedule.catch_up
        when 'all' then false
        when 'skip' then given.at < grace.since
        else given.at < p_due[cardinality(p_due)] and p_due[1] < grace.since
      end as missed
    from unnest(p_due) as given (at)
    cross join (select p_now - make_interval(secs => p_schedule.grace_s) as since) as grace
  )
  select due.at, false, null::timestamptz from due where not due.missed
  union all
  select min(due.at), true, max(due.at) from due where due.missed having count(*) > 0
$$;

-- live_runs: return the tasks and DAGs of a schedule that have not ended.
--
-- Only the last hundred are checked. A DAG that waits for a decision counts as stopped.
create or replace function treadle.live_runs(p_schedule uuid)
returns table (task_id uuid, dag_id uuid)
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select made.task_id, made.dag_id
  from (
    select schedule_runs.task_id, schedule_runs.dag_id
    from treadle.schedule_runs
    where schedule_runs.schedule_id = p_schedule and schedule_runs.status = 'queued'
    order by schedule_runs.id desc
    limit 100
  ) as made
  where
    exists (
      select from treadle.tasks
      where
        tasks.id = made.task_id
        and tasks.status not in ('completed', 'dead_lettered', 'cancelled')
    )
    or exists (
      select from treadle.dags
      where dags.id = made.dag_id and dags.status in ('open', 'running')
    )
$$;

-- cancel_runs: cancel earlier tasks and DAGs of a schedule that have not ended.
--
-- Concurrency: see cancel_tasks; a run that ends in the meantime is not cancelled.
-- Lock order:  tasks, dags, then the history.
create or replace function treadle.cancel_runs(
  p_schedule  treadle.schedules,
  p_nominal   timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_reason text := format(
    'schedule %s started again, for %s', p_schedule.name, treadle.format_utc(p_nominal)
  );
  v_actor  text := format('schedule:%s', p_schedule.name);
  v_tasks  uuid[];
  v_dags   uuid[];
begin
  select
    array_agg(live.task_id) filter (where live.task_id is not null),
    array_agg(live.dag_id) filter (where live.dag_id is not null)
  into v_tasks, v_dags
  from treadle.live_runs(p_schedule.id) as live;

  perform gone.id from treadle.cancel_tasks(v_tasks, v_reason, v_actor) as gone
  where v_tasks is not null;
  perform treadle.cancel_dag(old.id, v_reason, v_actor) from unnest(v_dags) as old (id);
end;
$$;

-- make_run: run one nominal time: check the overlap policy and enqueue the template.
--
-- A full queue has a status of its own; any other error is stored with its text. Both leave nothing
-- else behind, and the schedule continues.
--
-- Concurrency: the caller has locked the schedule. Transient errors (deadlock, lock timeout, server
-- shutdown) are raised, and the whole call is repeated.
-- Lock order:  as enqueue_batch, create_dag and cancel_tasks.
-- Raises:      only transient errors.
create or replace function treadle.make_run(
  p_schedule  treadle.schedules,
  p_nominal   timestamptz,
  p_missed    boolean,
  p_now       timestamptz
)
returns treadle.schedule_runs
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run  treadle.schedule_runs;
  v_made record;
begin
  v_run.schedule_id := p_schedule.id;
  v_run.schedule := p_schedule.name;
  v_run.nominal_at := p_nominal;
  v_run.fired_at := p_now;
  if p_missed then
    v_run.status := 'skipped_missed';
    return v_run;
  elsif treadle.was_run(p_schedule.id, p_nominal) then
    v_run.status := 'skipped_duplicate';
    return v_run;
  end if;

  begin
    if p_schedule.overlap = 'cancel_previous' then
      perform treadle.cancel_runs(p_schedule, p_nominal);
    elsif p_schedule.overlap = 'skip'
      and exists (select from treadle.live_runs(p_schedule.id)) then
      v_run.status := 'skipped_overlap';
      return v_run;
    end if;
    v_made := treadle.enqueue_template(p_schedule, p_nominal);
    if v_made.created then
      v_run.status := 'queued';
      v_run.task_id := v_made.task_id;
      v_run.dag_id := v_made.dag_id;
    else
      v_run.status := 'skipped_duplicate';
    end if;
  exception
    when sqlstate 'TR105' then
      v_run.status := 'skipped_queue_full';
      v_run.error := left(treadle.mask_text(sqlerrm), 2000);
    when transaction_rollback or lock_not_available or operator_intervention
      or insufficient_resources then
      raise;
    when others then
      v_run.status := 'failed';
      v_run.error := left(format('%s (%s)', treadle.mask_text(sqlerrm), sqlstate), 2000);
  end;
  return v_run;
end;
$$;

-- record_run: record the result of a nominal time, and emit an event for problems.
--
-- Returns false if the time was handled before.
--
-- Concurrency: the key prevents a second row for a time.
-- Lock order:  append-only tables.
create or replace function treadle.record_run(p_run treadle.schedule_runs)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into treadle.schedule_runs (
    schedule_id, schedule, nominal_at, missed_until, fired_at, status, task_id, dag_id, error, actor
  )
  values (
    p_run.schedule_id, p_run.schedule, p_run.nominal_at, p_run.missed_until, p_run.fired_at,
    p_run.status, p_run.task_id, p_run.dag_id, p_run.error, p_run.actor
  )
  on conflict (schedule_id, nominal_at) do nothing;
  if not found then
    if p_run.status = 'queued' then
      -- Without this row the task could be created twice, so the whole transaction is rolled back.
      raise unique_violation using
        message = format('schedule %s was already run for %s', p_run.schedule, p_run.nominal_at);
    end if;
    return false;
  end if;

  if p_run.status <> 'queued' then
    insert into treadle.events (at, kind, data)
    values (
      p_run.fired_at,
      case when p_run.status = 'failed' then 'schedule.failed' else 'schedule.skipped' end,
      jsonb_strip_nulls(
        jsonb_build_object(
          'schedule', p_run.schedule, 'nominal_at', p_run.nominal_at, 'status', p_run.status,
          'missed_until', p_run.missed_until, 'error', p_run.error
        )
      )
    );
  end if;
  return true;
end;
$$;

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
-- Well below deadlock_timeout, so that the other session is not the one that is cancelled.
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_now      timestamptz;
  v_schedule treadle.schedules;
  v_queue    text;
  v_plan     record;
  v_run      treadle.schedule_runs;
begin
  perform treadle.ensure_durable();
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

  v_queue := v_schedule.template #>> '{task,queue}';
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
        case
          when treadle.assignment_of(v_queue) = 'dispatch' then treadle.queue_depth(v_queue)
        end;
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
'Handle the due times of a schedule; returns what became of each.';

grant execute on function treadle.fire_schedule(uuid, bigint, timestamptz[], timestamptz) to
treadle_worker;
