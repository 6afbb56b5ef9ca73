-- dispatch_task: claim the next task of queue `push` for an agent that is to be sent it.
--
-- The submission is written down before anything is sent. Its number goes on from the last one,
-- unless the last one at this agent may have reached it: then the agent sees the same key again.
-- An agent that did not take or keep its last task rests for p_rest_s, whoever dispatches.
-- The claim lasts for p_keep_s without any dispatcher: the reaper does not take it before. Repeated
-- with its token, the call returns the same task.
--
-- Concurrency: the agent is locked and has one task at a time, whoever dispatches; tasks are taken
--              with skip locked.
-- Lock order:  as claim_tasks, then dispatches.
-- Raises:      TR001 invalid argument.

create or replace function treadle.dispatch_task(
  p_agent    text,
  p_token    uuid,
  p_holder   uuid,
  p_lease_s  double precision default 15,
  p_keep_s   double precision default 86400,
  p_rest_s   double precision default 0
)
returns setof treadle.dispatch_target
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_now    timestamptz := treadle.clock();
  v_target treadle.push_agents;
  v_task   record;
begin
  perform treadle.check_lease(p_token, p_holder, p_lease_s, p_keep_s);
  select push_agents.* into v_target
  from treadle.push_agents
  where push_agents.agent_id = p_agent;
  perform from treadle.agents where agents.id = p_agent for no key update;
  if not found
    or v_target.agent_id is null
    or not exists (select from treadle.queues where queues.name = 'push')
    or treadle.agent_rests(p_agent, p_rest_s)
    or exists (
      select from treadle.tasks
      where
        tasks.agent_id = p_agent and tasks.claim_token <> p_token
        and tasks.status in ('claimed', 'running', 'validating')
    ) then
    return;
  end if;

  select claimed.id, claimed.attempt
  into v_task
  from treadle.claim_tasks(p_agent, array['push'], null, 1, false, p_token, true) as claimed;
  if not found then
    return;
  end if;
  update treadle.tasks
  set lease_until = v_now + make_interval(secs => p_keep_s)
  where tasks.id = v_task.id and tasks.claim_token = p_token;

  insert into treadle.dispatches (
    task_id, claim_token, number, attempt, agent_id, agent_url, allow_private, holder,
    lease_until, sent_at, heard_at
  )
  values (
    v_task.id, p_token, treadle.dispatch_number(v_task.id, p_agent), v_task.attempt, p_agent,
    v_target.url, v_target.allow_private, p_holder, v_now + make_interval(secs => p_lease_s),
    v_now, v_now
  )
  on conflict (task_id, claim_token) do nothing;
  return query
  select (treadle.dispatch_target_of(dispatches)).*
  from treadle.dispatches
  where dispatches.task_id = v_task.id and dispatches.claim_token = p_token;
end;
$$;

comment on function treadle.dispatch_task(
  text, uuid, uuid, double precision, double precision, double precision
) is 'Claim the next task for an agent and write down that it is being sent there.';

revoke all on function treadle.dispatch_task(
  text, uuid, uuid, double precision, double precision, double precision
) from public;
grant execute on function treadle.dispatch_task(
  text, uuid, uuid, double precision, double precision, double precision
) to treadle_worker;
