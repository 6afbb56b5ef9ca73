-- push_agent_status: agents that tasks are sent to, what they do and what came of the last one.

create view treadle.push_agent_status as
select
  push_agents.agent_id,
  push_agents.url,
  push_agents.allow_private,
  coalesce(agents.status, 'offline') as status,
  coalesce(agents.silent, false) as silent,
  agents.heartbeat_at as answered_at,
  'queue-' || busy.task_id as queue_id,
  last.sent_at as last_sent_at,
  last.outcome as last_outcome,
  last.error as last_error,
  push_agents.created_at,
  push_agents.created_by
from treadle.push_agents
left join treadle.agents on push_agents.agent_id = agents.id
left join lateral (
  select tasks.id as task_id
  from treadle.tasks
  where
    tasks.agent_id = push_agents.agent_id
    and tasks.status in ('claimed', 'running', 'validating')
  order by tasks.claimed_at
  limit 1
) as busy on true
left join lateral (
  select
    dispatches.sent_at,
    dispatches.outcome,
    dispatches.error
  from treadle.dispatches
  where dispatches.agent_id = push_agents.agent_id
  order by dispatches.sent_at desc
  limit 1
) as last on true;

comment on view treadle.push_agent_status is
'One row per agent that tasks are sent to: its address, its task, its last submission.';

grant select on treadle.push_agent_status to treadle_observer, treadle_operator;
