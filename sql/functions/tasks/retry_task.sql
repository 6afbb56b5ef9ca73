-- retry_task: a person decides about a task that gave up, or does not want to wait for its retry.
--
-- select treadle.retry_task(id);
-- select treadle.retry_task(id, 'cancel', p_note => 'obsolete');
-- select treadle.retry_task(id, 'modify_and_retry', '{"spec": {"url": "..."}, "priority": 10}');
--
-- The new round has as many attempts as the type or queue allows; attempts go on counting.
--
-- Concurrency: the row is locked, then judged.
-- Lock order:  tasks, lanes, then the history.
-- Raises:      TR001 invalid argument, TR102 illegal transition, TR201 task not found.

create or replace function treadle.retry_task(
  p_id          uuid,
  p_resolution  text default 'retry',
  p_changes     jsonb default '{}',
  p_reviewer    text default null,
  p_note        text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  c_changes constant text[] := array[
    'spec', 'queue', 'type', 'priority', 'max_attempts', 'timeout_s', 'ageing_rate',
    'capabilities', 'assigned_agent', 'retry'
  ];
  v_now  timestamptz := treadle.clock();
  v_task treadle.tasks;
  v_to   text := case p_resolution when 'cancel' then 'cancelled' else 'ready' end;
begin
  if p_resolution is null or p_resolution not in ('retry', 'cancel', 'modify_and_retry')
    or (p_resolution = 'modify_and_retry') <> (coalesce(p_changes, '{}') <> '{}') then
    perform treadle.refuse(
      format('resolution %L does not go with changes %s', p_resolution, left(p_changes::text, 60)),
      jsonb_build_object('argument', 'resolution'),
      'Use retry or cancel without changes, or modify_and_retry with some.'
    );
  end if;

  perform treadle.check_settings(coalesce(p_changes, '{}'), c_changes);
  perform treadle.keep_durable();
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id for no key update;
  if not found or not exists (
    select from treadle.transitions
    where
      transitions.from_status = v_task.status and transitions.to_status = v_to
      and transitions.by = 'retry_task'
  ) then
    perform treadle.refuse_transition(p_id, v_to, 'retry_task');
  end if;

  update treadle.dead_letters
  set
    resolved_at = v_now,
    resolution = p_resolution,
    reviewer = coalesce(p_reviewer, session_user),
    note = p_note,
    changes = nullif(p_changes, '{}')
  where dead_letters.task_id = p_id and dead_letters.resolution is null;
  insert into treadle.events (at, kind, task_id, queue, actor, data)
  values (
    v_now, 'task.' || p_resolution, p_id, v_task.queue, coalesce(p_reviewer, session_user),
    jsonb_build_object('was', v_task.status, 'note', p_note, 'changes', p_changes)
  );

  if v_to = 'cancelled' then
    update treadle.tasks
    set status = 'cancelled', outcome = 'cancelled', completed_at = v_now
    where tasks.id = p_id;
  else
    perform treadle.restart_task(v_task, coalesce(p_changes, '{}'), v_now);
  end if;
  return v_to;
end;
$$;

comment on function treadle.retry_task(uuid, text, jsonb, text, text) is
'Resolve a dead letter (retry, cancel, modify_and_retry), revive a cancelled task, or retry now.';

revoke all on function treadle.retry_task(uuid, text, jsonb, text, text) from public;
grant execute on function treadle.retry_task(uuid, text, jsonb, text, text) to treadle_operator;
