-- rerun_action: execute an action again that failed or was interrupted, at the request of an
-- operator.
--
-- The operator must check first whether the action took effect; this cannot be known here.
--
-- Concurrency: the rows are locked, then checked. A late result of the earlier run changes nothing.
-- Lock order:  tasks, harness_actions.
-- Raises:      TR102 illegal transition, TR201 task not found.

-- lock_action: lock an action that an operator decides about; an error if it is running or ended.
--
-- Concurrency: the rows are locked, then checked.
-- Lock order:  tasks, harness_actions.
-- Raises:      TR102 illegal transition, TR201 task not found.
create or replace function treadle.lock_action(p_id uuid, p_to text)
returns treadle.harness_actions
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_action treadle.harness_actions;
begin
  perform treadle.ensure_durable();
  perform from treadle.tasks where tasks.id = p_id for no key update;
  select harness_actions.* into v_action
  from treadle.harness_actions
  where harness_actions.task_id = p_id
  for no key update;
  if not found then
    perform treadle.raise_error(
      format('task %s has no action in the harness log', p_id),
      jsonb_build_object('task_id', p_id), 'To list actions: treadle harness list', 'TR201'
    );
  elsif not (
    v_action.status in ('waiting', 'failed', 'interrupted')
    or v_action.status = 'executing' and v_action.lease_until < treadle.clock()
  ) then
    perform treadle.raise_error(
      format('the action of task %s is %s', p_id, v_action.status),
      jsonb_build_object(
        'task_id', p_id, 'from', v_action.status, 'to', p_to,
        'allowed', jsonb_build_array('waiting', 'failed', 'interrupted')
      ),
      'Only an action that is waiting, failed or interrupted can be changed.',
      'TR102'
    );
  end if;
  return v_action;
end;
$$;

create or replace function treadle.rerun_action(
  p_id     uuid,
  p_actor  text default null,
  p_note   text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.lock_action(p_id, 'waiting');
  update treadle.harness_actions
  set
    status = 'waiting', tries = 0, lease_until = null, ended_at = null,
    next_try_at = treadle.clock()
  where harness_actions.task_id = p_id;
  perform treadle.emit_action_event(p_id, 'rerun_requested', p_actor, p_note);
  perform treadle.notify_harness();
  return 'waiting';
end;
$$;

comment on function treadle.rerun_action(uuid, text, text) is
'Execute a harness action again that failed or was interrupted.';

grant execute on function treadle.rerun_action(uuid, text, text) to treadle_operator;
