-- claiming_agent: the agent that claims, its limit cut down to what is free.
--
-- Concurrency: an agent with a limit is locked, so that its tasks can be counted: only its own
--              claims make more of them.
-- Lock order:  agents.
-- Raises:      TR001 invalid argument, TR204 unknown agent.

create or replace function treadle.claiming_agent(p_agent text, p_limit integer)
returns treadle.agents
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_agent treadle.agents;
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.refuse(
      format('limit must be 1 to 10000, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit')
    );
  end if;

  select agents.* into v_agent from treadle.agents where agents.id = p_agent;
  if not found then
    perform treadle.refuse(
      format('agent %s is not registered', coalesce(quote_literal(left(p_agent, 60)), 'null')),
      jsonb_build_object('agent', left(p_agent, 200)),
      format('First: select treadle.register_agent(%L)', left(p_agent, 60)),
      'TR204'
    );
  end if;

  -- A claim is a sign of life, also of an agent that the reaper took for dead.
  if v_agent.silent then
    perform treadle.agent_heartbeat(p_agent);
    select agents.* into v_agent from treadle.agents where agents.id = p_agent;
  end if;

  if v_agent.status <> 'active' then
    v_agent.max_concurrent_tasks := 0;
  elsif v_agent.max_concurrent_tasks is not null then
    select agents.* into v_agent from treadle.agents where agents.id = p_agent for no key update;
    -- It may hold more than its limit, when that was lowered since.
    select greatest(0, v_agent.max_concurrent_tasks - count(*))
    into v_agent.max_concurrent_tasks
    from treadle.tasks
    where tasks.agent_id = p_agent and tasks.status in ('claimed', 'running', 'validating');
  end if;
  return v_agent;
end;
$$;

comment on function treadle.claiming_agent(text, integer) is
'Internal: the agent''s row; max_concurrent_tasks is what is left of it.';

revoke all on function treadle.claiming_agent(text, integer) from public;
