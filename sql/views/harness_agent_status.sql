-- harness_agent_status: agents that the harness may nudge, and the result of the last nudge.

create view treadle.harness_agent_status as
select
  harness_agents.agent_url,
  harness_agents.allow_private,
  harness_agents.nudged_at,
  harness_agents.nudge_error,
  agents.heartbeat_at as last_seen_at,
  harness_agents.created_at,
  harness_agents.created_by
from treadle.harness_agents
left join treadle.agents on harness_agents.agent_url = agents.id
where harness_agents.allowed;

comment on view treadle.harness_agent_status is
'Harness agents that may be nudged.';
comment on column treadle.harness_agent_status.agent_url is 'URL of the agent.';
comment on column treadle.harness_agent_status.allow_private is
'Whether private addresses are allowed.';
comment on column treadle.harness_agent_status.nudged_at is 'When it was nudged last.';
comment on column treadle.harness_agent_status.nudge_error is
'Error of the last nudge; null if it succeeded.';
comment on column treadle.harness_agent_status.last_seen_at is
'When the agent sent its last request.';
comment on column treadle.harness_agent_status.created_at is 'When nudges were allowed.';
comment on column treadle.harness_agent_status.created_by is 'Actor that allowed nudges.';

grant select on treadle.harness_agent_status to treadle_observer, treadle_operator;
