-- suits: whether a lane is for an agent, whatever is open or shut now.
--
-- An agent of the harness has only its own tasks there. Short, so that callers have it inlined.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.suits(p_lane treadle.lanes, p_agent treadle.agents)
returns boolean
language sql
immutable
parallel safe
return (
  p_lane.capabilities <@ p_agent.capabilities
  and (p_lane.agent_id is null or p_lane.agent_id = p_agent.id)
  and (p_lane.agent_id is not null or p_lane.queue <> 'harness' or p_agent.type <> 'harness')
);

comment on function treadle.suits(treadle.lanes, treadle.agents) is
'Internal: the agent has what the lane asks for, and the lane belongs to no other.';

revoke all on function treadle.suits(treadle.lanes, treadle.agents) from public;
