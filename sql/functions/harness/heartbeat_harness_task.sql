-- heartbeat_harness_task: record a heartbeat for a claimed task, which restarts its claim timeout.
--
-- Returns when the claim expires now; null if the claim was superseded.
--
-- Concurrency: as heartbeat_tasks.
-- Lock order:  tasks, agents.

create or replace function treadle.heartbeat_harness_task(p_id uuid, p_token uuid)
returns timestamptz
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_verdict text;
  v_task    treadle.tasks;
begin
  select beat.verdict
  into v_verdict
  from treadle.heartbeat_tasks(array[p_id], array[p_token]) as beat;
  if v_verdict <> 'ok' then
    return null;
  end if;
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id;
  perform treadle.register_harness_agent(v_task.agent_id, null);
  return v_task.lease_until;
end;
$$;

comment on function treadle.heartbeat_harness_task(uuid, uuid) is
'Restart the claim timeout of a task; returns when the claim expires; null if it was lost.';

grant execute on function treadle.heartbeat_harness_task(uuid, uuid) to treadle_worker;
