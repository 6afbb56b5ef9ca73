-- expire_dispatch: end a submission whose agent has not responded for too long.
--
-- The limit is p_unsure_s while it is unknown whether the agent has the task, and p_silent_s once
-- the agent has accepted it. The time counts from the last response, or from when this dispatcher
-- started to ask. Returns null before the limit, and if another dispatcher follows the submission.
--
-- Concurrency: only the dispatcher that follows the submission, and only between two requests to
-- the agent.
-- Lock order:  as end_dispatch.

create or replace function treadle.expire_dispatch(
  p_task      uuid,
  p_token     uuid,
  p_holder    uuid,
  p_error     text,
  p_unsure_s  double precision default 60,
  p_silent_s  double precision default 600
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_outcome text;
begin
  select case when dispatches.accepted_at is null then 'unsure' else 'silent' end
  into v_outcome
  from treadle.dispatches
  where
    dispatches.task_id = p_task
    and dispatches.claim_token = p_token
    and dispatches.holder = p_holder
    and dispatches.heard_at <= treadle.clock() - make_interval(
      secs => case when dispatches.accepted_at is null then p_unsure_s else p_silent_s end
    );
  if not found then
    return null;
  end if;
  return treadle.end_dispatch(p_task, p_token, p_holder, v_outcome, p_error);
end;
$$;

comment on function treadle.expire_dispatch(
  uuid, uuid, uuid, text, double precision, double precision
) is 'Requeue a task whose agent has not responded for too long; null before that.';

grant execute on function treadle.expire_dispatch(
  uuid, uuid, uuid, text, double precision, double precision
) to treadle_worker;
