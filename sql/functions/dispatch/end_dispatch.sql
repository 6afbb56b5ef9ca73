-- end_dispatch: what came of a submission, and what follows for its task.
--
-- completed, failed, cancelled: as the agent says. busy: to the end of the queue, no attempt
-- counted. refused: failed. error, unreachable, unsure, lost, silent: the attempt is counted and
-- the task waits again, in its place, until its attempts are used up. superseded: the claim went
-- another way. Returns the state of the task; empty when somebody else follows the submission.
--
-- Concurrency: only whoever follows the submission; an answer after the claim was lost is judged
--              as any late answer is.
-- Lock order:  tasks, dispatches, then as complete_tasks and fail_tasks.
-- Raises:      TR001 invalid argument, TR002 too large.

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
    perform treadle.lock_fallout(array[p_task], p_outcome = 'cancelled');
  end if;
  if (treadle.hold_dispatch(p_task, p_token, p_holder)).task_id is null then
    return null;
  end if;
  perform treadle.keep_durable();
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
'End a submission: complete, fail, cancel or queue its task again; says in which state it is.';

revoke all on function treadle.end_dispatch(uuid, uuid, uuid, text, text, jsonb) from public;
grant execute on function
treadle.end_dispatch(uuid, uuid, uuid, text, text, jsonb) to treadle_worker;
