-- suspend_task: release the claim of a running task until it can continue.
--
-- It can wait for tasks that it has spawned (p_children; with p_optional cancelled or failed ones
-- also count), for answers (p_waits), or for a time (p_run_at). The attempt is not counted, and its
-- steps are kept. Returns the new state: blocked (answers), pending (tasks or time), ready (nothing
-- to wait for), or already (a repeat).
--
-- Concurrency: the claim token is checked; the rows of the task and its children are locked in id
-- order, so that nothing it waits for ends unnoticed.
-- Lock order:  tasks, locks, waits, then the history.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR102 illegal transition, TR103 cycle,
--              TR201 task not found, TR206 unknown wait.

-- mark_awaited: mark the waits that suspend a task; returns how many are open.
--
-- Concurrency: the caller has locked the task, so none of its waits can end in the meantime.
-- Lock order:  waits (after tasks).
-- Raises:      TR206 unknown wait.
create or replace function treadle.mark_awaited(p_task uuid, p_waits uuid[])
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other uuid;
  v_open  integer;
begin
  select given.id
  into v_other
  from unnest(p_waits) as given (id)
  where not exists (
    select from treadle.waits where waits.id = given.id and waits.task_id = p_task
  )
  limit 1;
  if found then
    perform treadle.raise_error(
      format('task %s has no wait %s', p_task, coalesce(v_other::text, 'null')),
      jsonb_build_object('task_id', p_task, 'wait_id', v_other),
      'Open it first: treadle.open_wait returns its id.',
      'TR206'
    );
  end if;

  update treadle.waits
  set awaited = true
  where waits.id = any (p_waits) and waits.status = 'open';
  get diagnostics v_open = row_count;
  return v_open;
end;
$$;

-- suspend_claim: release a claim for a while and store what the task waits for.
--
-- Concurrency: the caller has locked the row.
-- Lock order:  tasks, then the history.
create or replace function treadle.suspend_claim(
  p_task    treadle.tasks,
  p_status  text,
  p_unmet    integer,
  p_run_at  timestamptz,
  p_now     timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row tid;
begin
  insert into treadle.attempts (
    task_id, claim_token, attempt, agent_id, claimed_at, started_at, ended_at, outcome, reason,
    cost_usd, model
  )
  values (
    p_task.id, p_task.claim_token, p_task.attempt, p_task.agent_id, p_task.claimed_at,
    p_task.started_at, p_now, 'suspended', p_status,
    treadle.attempt_cost(p_task.id, p_task.cost_usd),
    case
      when p_task.cost_usd > 0
        or treadle.has_requirements(p_task, treadle.types_with_requirements())
        then treadle.attempt_model(p_task)
    end
  );

  update treadle.tasks
  set
    status = p_status,
    attempt = tasks.attempt - 1,
    blocked_count = tasks.blocked_count + p_unmet,
    run_at = coalesce(p_run_at, tasks.run_at),
    delayed_at = case when p_run_at is null then tasks.delayed_at end,
    -- A task that continues at once keeps its slot.
    slot = case when p_status = 'ready' then tasks.slot end,
    durable = true,
    -- The claim has ended, so a later result with its token is rejected.
    last_token = null,
    agent_id = null,
    claim_token = null,
    lease_until = null,
    claimed_at = null,
    started_at = null,
    heartbeat_at = null
  where tasks.id = p_task.id
  returning tasks.ctid into v_row;

  perform treadle.audit_tasks(array[v_row], 'suspended', p_task.agent_id);
  perform treadle.release_resources(array[p_task.id]);
  if p_status = 'ready' then
    perform treadle.notify_workers(array[p_task.queue]);
  elsif p_status = 'pending' and p_unmet = 0 then
    perform treadle.notify_promoter(p_run_at);
  end if;
end;
$$;

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
  perform treadle.ensure_durable();
  if not treadle.is_valid_time(p_run_at) or p_run_at > v_now + interval '10 years' then
    perform treadle.raise_error(
      'run_at must be a time within ten years', jsonb_build_object('argument', 'run_at'),
      'Omit it to wait only for subtasks or answers.'
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
    perform treadle.lock_dependencies(p_children || p_id);
    perform treadle.raise_invalid_transition(given.id, 'pending', 'suspend_task')
    from unnest(p_children) as given (id)
    where not exists (select from treadle.tasks where tasks.id = given.id);
  end if;
  v_task := treadle.lock_claim(p_id, p_token);
  if p_children <> '{}' then
    v_left := treadle.add_edges(
      p_id, p_children, p_optional, case when p_optional then 'continue' else 'wait' end, v_now
    );
  end if;
  v_status := case
    when treadle.mark_awaited(p_id, p_waits) > 0 then 'blocked'
    when v_left > 0 or p_run_at > v_now then 'pending'
    else 'ready'
  end;
  perform treadle.suspend_claim(v_task, v_status, v_left, p_run_at, v_now);
  return v_status;
end;
$$;

comment on function treadle.suspend_task(uuid, uuid, uuid[], uuid[], timestamptz, boolean) is
'Release a claim until subtasks end, answers arrive or a time is reached; returns the new state.';

grant execute on function
treadle.suspend_task(uuid, uuid, uuid[], uuid[], timestamptz, boolean) to treadle_worker;
