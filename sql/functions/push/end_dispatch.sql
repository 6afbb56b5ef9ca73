-- end_dispatch: record the outcome of a submission and apply it to the task.
--
-- completed, failed, cancelled: as the agent reports. busy: the task moves to the end of the queue
-- without a counted attempt. refused: the task fails. error, unreachable, unsure, lost, silent: the
-- attempt counts, and the task waits in its old position until its attempts are used up.
-- superseded: the claim ended in another way. Returns the state of the task; null if another
-- dispatcher follows the submission.
--
-- Concurrency: only the dispatcher that follows the submission; a result after the claim was lost
-- is treated like any late result.
-- Lock order:  tasks, dispatches, then as complete_tasks and fail_tasks.
-- Raises:      TR001 invalid argument, TR002 too large.

-- settle_dispatch: apply the outcome of a submission to its task.
--
-- Concurrency: the caller has locked the task; the claim token is checked.
-- Lock order:  as complete_tasks, fail_tasks and release_tasks.
-- Raises:      TR001 invalid argument, TR002 too large.
create or replace function treadle.settle_dispatch(
  p_task     uuid,
  p_token    uuid,
  p_outcome  text,
  p_error    text,
  p_output   jsonb
)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
  v_error   text := p_error;
  v_class   text := case
    when p_outcome in ('error', 'unreachable', 'unsure') then 'unavailable'
    when p_outcome in ('lost', 'silent') then 'crash'
    when p_outcome = 'refused' then 'refused'
    else 'error'
  end;
  v_action  text := case
    when p_outcome in ('failed', 'refused') then 'fail'
    when p_outcome = 'cancelled' then 'cancel'
    when p_outcome in ('error', 'unreachable', 'unsure', 'lost', 'silent') then 'retry'
  end;
begin
  if p_outcome = 'completed' then
    v_verdict := (treadle.complete_tasks(array[p_task], array[p_token], array[p_output])).verdict;
    if v_verdict <> 'report_required' then
      return v_verdict;
    end if;
    -- The agent cannot be asked for a report.
    v_error := 'the type requires a decision report';
    v_class := 'invalid_output';
    v_action := 'fail';
  elsif p_outcome = 'busy' then
    v_verdict := (treadle.release_tasks(array[p_task], array[p_token])).verdict;
    update treadle.tasks
    set rank = treadle.push_rank(tasks, treadle.clock())
    where tasks.id = p_task and v_verdict = 'released';
    return v_verdict;
  elsif p_outcome = 'superseded' then
    return 'stale';
  elsif v_action is null then
    perform treadle.raise_error(
      format('a submission cannot end as %L', left(p_outcome, 60)),
      jsonb_build_object('argument', 'outcome')
    );
  end if;
  select ended.verdict
  into v_verdict
  from treadle.fail_tasks(
    array[p_task], array[p_token], array[v_class], array[v_error], array[v_action],
    array[0::double precision]
  ) as ended;
  return v_verdict;
end;
$$;

create or replace function treadle.end_dispatch(
  p_task     uuid,
  p_token    uuid,
  p_holder   uuid,
  p_outcome  text,
  p_error    text default null,
  p_output   jsonb default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now     timestamptz := treadle.clock();
  v_verdict text;
  v_status  text;
begin
  if p_outcome = 'completed' then
    perform treadle.lock_with_dependents(array[p_task]);
  else
    perform treadle.lock_failure_cascade(array[p_task], p_outcome = 'cancelled');
  end if;
  if (treadle.lock_dispatch(p_task, p_token, p_holder)).task_id is null then
    return null;
  end if;
  perform treadle.ensure_durable();
  v_verdict := treadle.settle_dispatch(p_task, p_token, p_outcome, p_error, p_output);
  select tasks.status into v_status from treadle.tasks where tasks.id = p_task;

  update treadle.dispatches
  set
    ended_at = v_now,
    outcome = case
      when v_verdict not in ('stale', 'already') then p_outcome
      when v_status = 'cancelled' then 'cancelled'
      else 'superseded'
    end,
    error = left(p_error, 2000),
    holder = null,
    lease_until = null
  where dispatches.task_id = p_task and dispatches.claim_token = p_token;
  return coalesce(v_status, 'gone');
end;
$$;

comment on function treadle.end_dispatch(uuid, uuid, uuid, text, text, jsonb) is
'End a submission: complete, fail, cancel or requeue its task; returns the state of the task.';

grant execute on function
treadle.end_dispatch(uuid, uuid, uuid, text, text, jsonb) to treadle_worker;
