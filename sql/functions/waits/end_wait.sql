-- end_wait: store the answer of a wait, and save it as a step of the task.
--
-- It does not resume the task: the caller calls resume_tasks once for all waits that it ended. A
-- task that has reached the limit of its steps gets no step; it finds the answer when it asks
-- again.
--
-- Concurrency: the caller has locked the task and the wait, which is open.
-- Lock order:  waits, steps; after tasks.

-- wait_answer: return the answer of a wait as the task receives it; null while it is open.
create or replace function treadle.wait_answer(p_wait treadle.waits)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'status', p_wait.status, 'value', p_wait.answer, 'by', p_wait.answered_by,
    'note', p_wait.note, 'at', p_wait.ended_at
  )
  where p_wait.status in ('answered', 'expired')
$$;

-- emit_wait_event: write an event about a wait.
create or replace function treadle.emit_wait_event(
  p_wait   treadle.waits,
  p_what   text,
  p_actor  text,
  p_data   jsonb
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  insert into treadle.events (at, kind, task_id, dag_id, queue, actor, data)
  select
    treadle.clock(), 'wait.' || p_what, tasks.id, tasks.dag_id, tasks.queue, p_actor,
    jsonb_build_object('wait_id', p_wait.id, 'name', p_wait.name, 'kind', p_wait.kind) || p_data
  from treadle.tasks
  where tasks.id = p_wait.task_id
$$;

create or replace function treadle.end_wait(
  p_wait      treadle.waits,
  p_status    text,
  p_value     jsonb,
  p_by        text,
  p_note      text,
  p_event_id  bigint default null
)
returns treadle.waits
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_wait treadle.waits;
begin
  update treadle.waits
  set
    status = p_status,
    answer = p_value,
    answered_by = p_by,
    note = p_note,
    event_id = p_event_id,
    ended_at = treadle.clock()
  where waits.id = p_wait.id
  returning waits.* into v_wait;

  begin
    perform treadle.store_step(
      tasks.id, v_wait.name, 'wait', treadle.wait_answer(v_wait), tasks.attempt, null, null
    )
    from treadle.tasks
    where tasks.id = v_wait.task_id;
  exception
    when sqlstate 'TR002' then null;
  end;
  return v_wait;
end;
$$;

-- deliver_event: end a wait with the event that it waited for.
--
-- Concurrency: the caller has locked the task, the topic and the wait.
-- Lock order:  waits, steps; after tasks and topics.
create or replace function treadle.deliver_event(p_wait treadle.waits, p_event treadle.events)
returns treadle.waits
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wait treadle.waits := treadle.end_wait(
    p_wait, 'answered', p_event.data, p_event.actor, null, p_event.id
  );
begin
  perform treadle.emit_wait_event(
    v_wait, 'answered', p_event.actor,
    jsonb_build_object('value', p_event.data, 'note', null, 'event_id', p_event.id)
  );
  return v_wait;
end;
$$;

-- close_waits: cancel the open waits of tasks that have ended.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  waits, after tasks.
create or replace function treadle.close_waits(p_tasks uuid[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  update treadle.waits
  set status = 'cancelled', ended_at = treadle.clock()
  where waits.task_id = any (p_tasks) and waits.status = 'open'
$$;

-- resume_tasks: resume blocked tasks that have all their answers.
--
-- They become ready, or pending if they also wait for tasks or for a time.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks.
create or replace function treadle.resume_tasks(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[];
begin
  with moved as (
    update treadle.tasks
    set
      budget_id = null,
      status = case
        when tasks.blocked_count > 0 or tasks.run_at > v_now then 'pending'
        else treadle.entry_status(tasks.concurrency_key, tasks.slot)
      end,
      slot = case
        when tasks.blocked_count = 0 and coalesce(tasks.run_at <= v_now, true)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
      end
    where
      tasks.id = any (p_ids)
      and tasks.status = 'blocked'
      and not exists (
        select from treadle.waits
        where waits.task_id = tasks.id and waits.status = 'open' and waits.awaited
      )
    returning tasks.ctid
  )

  select array_agg(moved.ctid) into v_rows from moved;
  perform treadle.notify_released(v_rows, 'resumed');
end;
$$;
