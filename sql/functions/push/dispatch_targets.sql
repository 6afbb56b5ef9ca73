-- dispatch_targets: list the agents that tasks may be sent to, in the order in which they are
-- tried.
--
-- An agent that was offline is included: its next response makes it active again. An agent is free
-- if it has no task and did not fail to accept one within the last p_cooldown_s seconds.
--
-- Concurrency: reads only; dispatch_task checks again.

create or replace function treadle.dispatch_targets(p_cooldown_s double precision default 0)
returns table (
  agent_id text, url text, allow_private boolean, free boolean, waiting boolean
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select
    push_agents.agent_id,
    push_agents.url,
    push_agents.allow_private,
    not exists (
      select from treadle.tasks
      where
        tasks.agent_id = push_agents.agent_id
        and tasks.status in ('claimed', 'running', 'validating')
    )
    and not treadle.agent_in_cooldown(push_agents.agent_id, p_cooldown_s),
    exists (
      select from treadle.tasks
      where tasks.queue = 'push' and tasks.completed_at is null and tasks.status = 'ready'
    )
  from treadle.push_agents
  left join treadle.agents on push_agents.agent_id = agents.id
  where agents.status is null or agents.status = 'active' or agents.silent
  order by push_agents.agent_id collate "C"
$$;

comment on function treadle.dispatch_targets(double precision) is
'Where the dispatcher may send tasks, in order, and whether any task waits.';

grant execute on function treadle.dispatch_targets(double precision) to treadle_worker;
