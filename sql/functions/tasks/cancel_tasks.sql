-- cancel_tasks: cancel tasks and their dependents.
--
-- Once it returns, no claim starts and no result is accepted. Returns for each task cancelled,
-- already (it was), ended (too late) or unknown; then the tasks cancelled with them, as cascaded:
-- dependents over edges that are not optional, and subtasks.
--
-- Concurrency: rows are locked in id order; the worker of a running task is notified at once.
-- Lock order:  tasks, dags, then the history.

-- cancel_rows: cancel tasks, and end their claims, waits and edges.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks, dags, then the history.
create or replace function treadle.cancel_rows(
  p_held    treadle.tasks[],
  p_asked   uuid[],
  p_reason  text,
  p_actor   text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_now   timestamptz := treadle.clock();
  v_types text[] := treadle.types_with_requirements();
  v_ids   uuid[] := array(select held.id from unnest(p_held) as held);
begin
  insert into treadle.attempts (
    task_id, claim_token, attempt, agent_id, claimed_at, started_at, ended_at, outcome, reason,
    cost_usd, model
  )
  select
    held.id, held.claim_token, held.attempt, held.agent_id, held.claimed_at, held.started_at,
    v_now, 'cancelled', p_reason, treadle.attempt_cost(held.id, held.cost_usd),
    case when treadle.has_requirements(held, v_types) or held.cost_usd > 0
      then treadle.attempt_model(held)
    end
  from unnest(p_held) as held
  where held.claim_token is not null;

  if found then
    perform pg_notify('treadle_cancelled', '');
  end if;

  update treadle.tasks
  set
    status = 'cancelled',
    completed_at = v_now,
    failure_reason = p_reason,
    slot = null,
    budget_id = null,
    last_token = coalesce(tasks.claim_token, tasks.last_token),
    agent_id = null,
    claim_token = null,
    lease_until = null,
    retry_at = null
  where tasks.id = any (v_ids);

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    v_now, 'task.cancelled', held.id, held.queue, p_actor,
    jsonb_build_object(
      'reason', p_reason, 'was', held.status,
      'cascaded', held.id not in (
        select asked.id from unnest(p_asked) as asked (id) where asked.id is not null
      )
    )
  from unnest(p_held) as held;

  perform treadle.log_work(
    held.id, p_actor, treadle.work_status(held.status), 'cancelled', held.assigned_agent, p_reason,
    p_at => v_now
  )
  from unnest(p_held) as held
  where
    held.queue = any (array(select queues.name from treadle.queues where queues.keep_changes));
  perform treadle.propagate_ended(v_ids, v_now);
  perform treadle.release_resources(array_agg(held.id))
  from unnest(p_held) as held
  where treadle.is_counted(held)
  having count(*) > 0;
end;
$$;

create or replace function treadle.cancel_tasks(
  p_ids     uuid[],
  p_reason  text default null,
  p_actor   text default null
)
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_ids  uuid[];
  v_held treadle.tasks[];
begin
  perform treadle.ensure_durable();
  -- Two statements, so that the second one sees the rows as they are once locked.
  v_ids := treadle.lock_downstream(p_ids);
  v_held := array(
    select tasks
    from treadle.tasks
    where tasks.id = any (v_ids) and tasks.completed_at is null
    order by tasks.id
  );
  if v_held <> '{}' then
    perform treadle.cancel_rows(v_held, p_ids, p_reason, coalesce(p_actor, session_user));
  end if;

  -- As sets, not as joins, because there may be many.
  return query
  select given.id, case
    when given.id in (select held.id from unnest(v_held) as held) then 'cancelled'
    when tasks.status = 'cancelled' then 'already'
    when tasks.id is not null then 'ended'
    else 'unknown'
  end
  from unnest(p_ids) with ordinality as given (id, at)
  left join treadle.tasks on given.id = tasks.id
  order by given.at;

  return query
  select held.id, 'cascaded'
  from unnest(v_held) as held
  where held.id not in (
    select asked.id from unnest(p_ids) as asked (id) where asked.id is not null
  );
end;
$$;

comment on function treadle.cancel_tasks(uuid[], text, text) is
'Cancel tasks that have not ended, and their dependents; returns what became of each.';

-- cancel_task: cancel one task; an error if it has ended in another way or does not exist.
--
-- select treadle.cancel_task(id, 'not needed');
--
-- Concurrency: see cancel_tasks.
-- Lock order:  tasks, then the history.
-- Raises:      TR102 illegal transition, TR201 task not found.
create or replace function treadle.cancel_task(
  p_id      uuid,
  p_reason  text default null,
  p_actor   text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
begin
  select cancelled.verdict
  into v_verdict
  from treadle.cancel_tasks(array[p_id], p_reason, p_actor) as cancelled;
  if v_verdict in ('ended', 'unknown') then
    perform treadle.raise_invalid_transition(p_id, 'cancelled', 'cancel_tasks');
  end if;
  return v_verdict;
end;
$$;

comment on function treadle.cancel_task(uuid, text, text) is
'Cancel one task, with a reason.';

grant execute on function treadle.cancel_tasks(uuid[], text, text) to
treadle_producer, treadle_operator;
grant execute on function treadle.cancel_task(uuid, text, text) to
treadle_producer, treadle_operator;
