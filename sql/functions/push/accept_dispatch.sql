-- accept_dispatch: an agent has taken a task; it works on it now.
--
-- Says ok, cancelled or lost (the claim is gone, the agent should be told), or taken: somebody else
-- follows the submission, and nothing was changed.
--
-- Concurrency: only whoever follows the submission; a repeated call changes nothing.
-- Lock order:  tasks, dispatches.

-- hold_dispatch: lock a task and its open submission for whoever follows it.
--
-- Time is not asked: a lease that ran out and that nobody took over still holds.
--
-- Concurrency: the fence is checked on the locked row; empty when somebody else has it.
-- Lock order:  tasks, dispatches.
create or replace function treadle.hold_dispatch(p_task uuid, p_token uuid, p_holder uuid)
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
  if (treadle.hold_dispatch(p_task, p_token, p_holder)).task_id is null then
    return 'taken';
  end if;
  perform treadle.keep_durable();
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
  -- A start makes the lease that of a worker, which has to give signs of life itself.
  update treadle.tasks
  set lease_until = greatest(tasks.lease_until, v_until)
  where tasks.id = p_task and tasks.claim_token = p_token;
  return v_verdict;
end;
$$;

comment on function treadle.accept_dispatch(uuid, uuid, uuid, text, text) is
'Record that an agent works on a task, under which id; says whether the claim still holds.';

grant execute on function treadle.accept_dispatch(uuid, uuid, uuid, text, text) to treadle_worker;
