-- cancel_rows: end tasks as cancelled, with their claims, waits, edges and DAGs.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks, dags, then the history.
-- Raises:      nothing.

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
  v_types text[] := treadle.demanding_types();
  v_ids   uuid[] := array(select held.id from unnest(p_held) as held);
begin
  insert into treadle.attempts (
    task_id, claim_token, attempt, agent_id, claimed_at, started_at, ended_at, outcome, reason,
    cost_usd, model
  )
  select
    held.id, held.claim_token, held.attempt, held.agent_id, held.claimed_at, held.started_at,
    v_now, 'cancelled', p_reason, treadle.attempt_cost(held.id, held.cost_usd),
    case when treadle.has_terms(held, v_types) or held.cost_usd > 0
      then treadle.attempt_model(held)
    end
  from unnest(p_held) as held
  where held.claim_token is not null;

  if found then
    perform pg_notify('task_cancelled', '');
  end if;

  update treadle.tasks
  set
    status = 'cancelled',
    outcome = 'cancelled',
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
  where held.queue = 'work';
  perform treadle.settle_ends(v_ids, v_now);
  perform treadle.free_tasks(array_agg(held.id))
  from unnest(p_held) as held
  where treadle.is_counted(held)
  having count(*) > 0;
end;
$$;

comment on function treadle.cancel_rows(treadle.tasks[], uuid[], text, text) is
'Internal: writes a cancellation and all that follows from it.';

revoke all on function treadle.cancel_rows(treadle.tasks[], uuid[], text, text) from public;
