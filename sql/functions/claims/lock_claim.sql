-- lock_claim: lock a claimed task for its agent and renew its lease; an error if the claim was
-- superseded.
--
-- The time is not checked: an expired claim that the reaper has not ended is still valid.
--
-- Concurrency: the row is locked, then the token is checked.
-- Lock order:  tasks.
-- Raises:      TR101 claim lost.

-- lease_duration: return how long a claim of this agent lasts without a heartbeat.
create or replace function treadle.lease_duration(p_agent treadle.agents, p_started boolean)
returns interval
language sql
immutable
parallel safe
return pg_catalog.make_interval(
  secs => case when p_started then 3 * p_agent.heartbeat_s else p_agent.claim_ttl_s end
);

-- renewed_lease: return when the lease of a task ends that has been heard of now.
--
-- This is the only rule for tasks that run or validate. A longer lease that a task already runs
-- under, such as that of a push agent, is kept; the time that it had to start is not.
create or replace function treadle.renewed_lease(
  p_task   treadle.tasks,
  p_agent  treadle.agents,
  p_now    timestamptz
)
returns timestamptz
language sql
immutable
parallel safe
return greatest(
  case when p_task.started_at is not null then p_task.lease_until end,
  p_now + treadle.lease_duration(p_agent, true)
);

create or replace function treadle.lock_claim(p_id uuid, p_token uuid)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_task treadle.tasks;
  v_was  text;
  v_row  tid;
begin
  perform treadle.ensure_durable();
  select tasks.*
  into v_task
  from treadle.tasks
  where tasks.id = p_id and tasks.claim_token = p_token
  for no key update;
  if not found then
    perform treadle.raise_if_lost(p_id, 'lost');
  end if;
  v_was := v_task.status;

  update treadle.tasks
  set
    lease_until = treadle.renewed_lease(tasks, agents, v_now),
    heartbeat_at = v_now,
    started_at = coalesce(tasks.started_at, v_now),
    status = case when tasks.status = 'claimed' then 'running' else tasks.status end
  from treadle.agents
  where tasks.id = p_id and agents.id = v_task.agent_id
  returning tasks.ctid into v_row;
  if v_was = 'claimed' then
    perform treadle.audit_tasks(array[v_row], 'started', null);
  end if;
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id;
  return v_task;
end;
$$;
