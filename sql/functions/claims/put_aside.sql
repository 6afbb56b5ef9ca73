-- put_aside: write that a claim was given up for a while.
--
-- Concurrency: the caller holds the row.
-- Lock order:  tasks, then the history.
-- Raises:      nothing.

create or replace function treadle.put_aside(
  p_task    treadle.tasks,
  p_status  text,
  p_left    integer,
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
    cost_usd
  )
  values (
    p_task.id, p_task.claim_token, p_task.attempt, p_task.agent_id, p_task.claimed_at,
    p_task.started_at, p_now, 'suspended', p_status,
    treadle.attempt_cost(p_task.id, p_task.cost_usd)
  );

  update treadle.tasks
  set
    status = p_status,
    attempt = tasks.attempt - 1,
    blocked_count = tasks.blocked_count + p_left,
    run_at = coalesce(p_run_at, tasks.run_at),
    delayed_at = case when p_run_at is null then tasks.delayed_at end,
    -- One that goes on at once keeps its slot.
    slot = case when p_status = 'ready' then tasks.slot end,
    durable = true,
    -- Given up for good: a result that comes later is not wanted.
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
  perform treadle.free_tasks(array[p_task.id]);
  if p_status = 'ready' then
    perform treadle.wake_queues(array[p_task.queue]);
  elsif p_status = 'pending' and p_left = 0 then
    perform treadle.wake_promoter(p_run_at);
  end if;
end;
$$;

comment on function treadle.put_aside(treadle.tasks, text, integer, timestamptz, timestamptz) is
'Internal: takes the claim off a task without counting the attempt.';

revoke all on function treadle.put_aside(treadle.tasks, text, integer, timestamptz, timestamptz)
from public;
