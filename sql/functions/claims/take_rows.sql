-- take_rows: write a claim on tasks that are locked.
--
-- Updated where they are: this plan does not depend on what the planner believes of the table.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.take_rows(
  p_rows      tid[],
  p_agent     treadle.agents,
  p_token     uuid,
  p_start     boolean,
  p_budgeted  boolean,
  p_now       timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_until timestamptz := p_now + treadle.lease(p_agent, p_start);
  v_rows  tid[];
begin
  perform treadle.keep_durable();
  with taken as (
    update treadle.tasks
    set
      status = case when p_start then 'running' else 'claimed' end,
      attempt = tasks.attempt + 1,
      agent_id = p_agent.id,
      claim_token = p_token,
      last_token = null,
      claimed_at = p_now,
      started_at = case when p_start then p_now end,
      heartbeat_at = case when p_start then p_now end,
      lease_until = v_until,
      budgeted = p_budgeted,
      progress = null
    -- A call repeated after the reaper was there must not give a task its old token again.
    where
      tasks.ctid = any (p_rows)
      and tasks.last_token is distinct from p_token
      and (
        (tasks.attempt + tasks.rate_limits = 0 and not tasks.durable)
        or (
          select count(*)
          from treadle.attempts
          where attempts.task_id = tasks.id and attempts.claim_token = p_token
        ) = 0
      )
    returning tasks.ctid
  )

  select array_agg(taken.ctid) into v_rows from taken;
  perform treadle.audit_tasks(v_rows, 'claimed', p_agent.id);
  return coalesce(v_rows, '{}');
end;
$$;

comment on function treadle.take_rows(
  tid[], treadle.agents, uuid, boolean, boolean, timestamptz
) is
'Internal: turns ready tasks into claims of an agent; returns where they are now.';

revoke all on function treadle.take_rows(
  tid[], treadle.agents, uuid, boolean, boolean, timestamptz
)
from public;
