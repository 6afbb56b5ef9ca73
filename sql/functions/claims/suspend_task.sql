-- suspend_task: a running task gives up its claim until what it waits for is there.
--
-- For tasks it has spawned (p_children; with p_optional also when they are cancelled or give up),
-- for answers (p_waits), or for a moment (p_run_at). No attempt is burnt, and its steps are kept.
-- Returns the state it is in now: blocked (answers), pending (tasks or time), ready (nothing left
-- to wait for), or already (a repeat).
--
-- Concurrency: fenced by the claim; its row and those of the children are locked in id order, so
--              that nothing it waits for ends unseen.
-- Lock order:  tasks, locks, waits, then the history.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR102 illegal transition, TR103 cycle,
--              TR201 task not found, TR206 unknown wait.

create or replace function treadle.suspend_task(
  p_id        uuid,
  p_token     uuid,
  p_children  uuid[] default '{}',
  p_waits     uuid[] default '{}',
  p_run_at    timestamptz default null,
  p_optional  boolean default false
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now    timestamptz := treadle.clock();
  v_task   treadle.tasks;
  v_left   integer := 0;
  v_status text;
begin
  perform treadle.keep_durable();
  if not treadle.is_moment(p_run_at) or p_run_at > v_now + interval '10 years' then
    perform treadle.refuse(
      'run_at must be a moment within ten years', jsonb_build_object('argument', 'run_at'),
      'Leave it out to wait for subtasks or answers alone.'
    );
  end if;
  if exists (
    select from treadle.attempts
    where
      attempts.task_id = p_id and attempts.claim_token = p_token
      and attempts.outcome = 'suspended'
  ) then
    return 'already';
  end if;
  if p_children <> '{}' then
    perform treadle.hold_dependencies(p_children || p_id);
    perform treadle.refuse_transition(given.id, 'pending', 'suspend_task')
    from unnest(p_children) as given (id)
    where not exists (select from treadle.tasks where tasks.id = given.id);
  end if;
  v_task := treadle.hold_claim(p_id, p_token);
  if p_children <> '{}' then
    v_left := treadle.link_task(
      p_id, p_children, p_optional, case when p_optional then 'continue' else 'wait' end, v_now
    );
  end if;
  v_status := case
    when treadle.await_waits(p_id, p_waits) > 0 then 'blocked'
    when v_left > 0 or p_run_at > v_now then 'pending'
    else 'ready'
  end;
  perform treadle.put_aside(v_task, v_status, v_left, p_run_at, v_now);
  return v_status;
end;
$$;

comment on function treadle.suspend_task(uuid, uuid, uuid[], uuid[], timestamptz, boolean) is
'Give up a claim until subtasks, answers or a moment have come; says which state that is.';

revoke all on function treadle.suspend_task(uuid, uuid, uuid[], uuid[], timestamptz, boolean)
from public;
grant execute on function
treadle.suspend_task(uuid, uuid, uuid[], uuid[], timestamptz, boolean) to treadle_worker;
