-- harness_nudging: agents that the harness nudges, and how the last nudge of each went.

create view treadle.harness_nudging as
select
  harness_agents.agent_url,
  harness_agents.allow_private,
  harness_agents.nudged_at,
  harness_agents.nudge_error,
  agents.heartbeat_at as last_seen_at,
  harness_agents.created_at,
  harness_agents.created_by
from treadle.harness_agents
left join treadle.agents on harness_agents.agent_url = agents.id;

comment on view treadle.harness_nudging is
'Agents of the harness that operators let it nudge.';

grant select on treadle.harness_nudging to treadle_observer, treadle_operator;
