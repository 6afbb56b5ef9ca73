-- push_agent_status: agents that tasks are sent to, their current task and last submission.

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
'One row per push agent: its URL, its current task and its last submission.';
comment on column treadle.push_agent_status.agent_id is 'Id of the agent.';
comment on column treadle.push_agent_status.url is 'URL of the agent.';
comment on column treadle.push_agent_status.allow_private is
'Whether private addresses are allowed.';
comment on column treadle.push_agent_status.status is 'active, draining or offline.';
comment on column treadle.push_agent_status.silent is
'Whether it was set offline because it did not respond.';
comment on column treadle.push_agent_status.answered_at is 'When it responded last.';
comment on column treadle.push_agent_status.queue_id is 'Entry that it works on now.';
comment on column treadle.push_agent_status.last_sent_at is 'When a task was sent to it last.';
comment on column treadle.push_agent_status.last_outcome is 'How its last submission ended.';
comment on column treadle.push_agent_status.last_error is 'Text of the last error.';
comment on column treadle.push_agent_status.created_at is 'When it was created.';
comment on column treadle.push_agent_status.created_by is 'Actor that created it.';

grant select on treadle.push_agent_status to treadle_observer, treadle_operator;
