-- resolve_task: carry out what a person decided about a task, and keep the decision.
--
-- What follows for others is left to the caller, who may have decided about many.
--
-- Concurrency: the row is locked, then judged.
-- Lock order:  tasks, lanes, then the history.
-- Raises:      TR001 invalid argument, TR102 illegal transition, TR201 task not found.

create or replace function treadle.resolve_task(
  p_id          uuid,
  p_resolution  text,
  p_changes     jsonb,
  p_reviewer    text,
  p_note        text,
  p_delay_s     double precision default null
)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_task treadle.tasks;
  v_by   text := coalesce(p_reviewer, session_user);
  v_to   text := case p_resolution when 'cancel' then 'cancelled' else 'ready' end;
begin
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id for no key update;
  if not found or not exists (
    select from treadle.transitions
    where
      transitions.from_status = v_task.status and transitions.to_status = v_to
      and transitions.by = 'retry_task'
  ) then
    perform treadle.refuse_transition(p_id, v_to, 'retry_task');
  end if;

  with letter as (
    update treadle.dead_letters
    set
      resolved_at = v_now,
      resolution = p_resolution,
      reviewer = v_by,
      note = p_note,
      changes = nullif(p_changes, '{}')
    where dead_letters.task_id = p_id and dead_letters.resolution is null
    returning dead_letters.*
  )

  insert into treadle.dead_letter_decisions (
    at, letter_id, task_id, decision, actor, note, changes, delay_s, queue, type, class,
    fingerprint, about
  )
  select
    v_now, letter.id, p_id, p_resolution, v_by, p_note, letter.changes, p_delay_s, v_task.queue,
    v_task.type, letter.class, letter.fingerprint, letter.about
  from letter;
  insert into treadle.events (at, kind, task_id, queue, actor, data)
  values (
    v_now, 'task.' || p_resolution, p_id, v_task.queue, v_by,
    jsonb_build_object('was', v_task.status, 'note', p_note, 'changes', p_changes)
    || case when p_delay_s is null then '{}' else jsonb_build_object('delay_s', p_delay_s) end
  );

  if v_to = 'cancelled' then
    update treadle.tasks
    set status = 'cancelled', outcome = 'cancelled', completed_at = v_now
    where tasks.id = p_id;
  else
    v_to := treadle.restart_task(
      v_task,
      coalesce(p_changes, '{}') || case
        when p_delay_s > 0
          then jsonb_build_object('run_at', v_now + make_interval(secs => p_delay_s))
        else '{}'
      end,
      v_now
    );
    update treadle.tasks set delayed_at = v_now where p_delay_s > 0 and tasks.id = p_id;
  end if;
  perform treadle.log_work(
    p_id, v_by, treadle.work_status(v_task.status), treadle.work_status(tasks.status),
    tasks.assigned_agent, p_note, v_to <> 'cancelled'
  )
  from treadle.tasks
  where tasks.id = p_id and tasks.queue = 'work';
  return v_to;
end;
$$;

comment on function treadle.resolve_task(uuid, text, jsonb, text, text, double precision) is
'Internal: writes a decision about a task and carries it out.';

revoke all on function treadle.resolve_task(uuid, text, jsonb, text, text, double precision)
from public;
