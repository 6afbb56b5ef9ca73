-- accept_dispatch: record that an agent has accepted a task and works on it.
--
-- Returns ok, cancelled or lost (the claim has ended, and the dispatcher should cancel the task at
-- the agent), or taken: another dispatcher follows the submission, and nothing was changed.
--
-- Concurrency: only the dispatcher that follows the submission; a repeated call changes nothing.
-- Lock order:  tasks, dispatches.

-- lock_dispatch: lock a task and its open submission for the dispatcher that follows it.
--
-- The time is not checked: an expired lease that no other dispatcher has taken over is still valid.
--
-- Concurrency: the holder is checked on the locked row; returns null if another dispatcher has it.
-- Lock order:  tasks, dispatches.
create or replace function treadle.lock_dispatch(p_task uuid, p_token uuid, p_holder uuid)
returns treadle.dispatches
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found treadle.dispatches;
begin
  perform treadle.lock_tasks(array[p_task]);
  select dispatches.* into v_found
  from treadle.dispatches
  where
    dispatches.task_id = p_task
    and dispatches.claim_token = p_token
    and dispatches.holder = p_holder
  for no key update;
  return v_found;
end;
$$;

create or replace function treadle.accept_dispatch(
  p_task        uuid,
  p_token       uuid,
  p_holder      uuid,
  p_agent_task  text,
  p_session     text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now     timestamptz := treadle.clock();
  v_until   timestamptz;
  v_verdict text;
begin
  if (treadle.lock_dispatch(p_task, p_token, p_holder)).task_id is null then
    return 'taken';
  end if;
  perform treadle.ensure_durable();
  update treadle.dispatches
  set
    agent_task_id = coalesce(dispatches.agent_task_id, left(p_agent_task, 500)),
    session_id = coalesce(dispatches.session_id, left(p_session, 500)),
    accepted_at = coalesce(dispatches.accepted_at, v_now),
    heard_at = v_now
  where dispatches.task_id = p_task and dispatches.claim_token = p_token;

  select tasks.lease_until into v_until from treadle.tasks where tasks.id = p_task;
  select started.verdict
  into v_verdict
  from treadle.start_tasks(array[p_task], array[p_token]) as started;
  -- From the start the lease is that of a worker, which must send heartbeats.
  update treadle.tasks
  set lease_until = greatest(tasks.lease_until, v_until)
  where tasks.id = p_task and tasks.claim_token = p_token;
  return v_verdict;
end;
$$;

comment on function treadle.accept_dispatch(uuid, uuid, uuid, text, text) is
'Record that an agent works on a task and under which id; returns whether the claim is valid.';

grant execute on function treadle.accept_dispatch(uuid, uuid, uuid, text, text) to treadle_worker;
