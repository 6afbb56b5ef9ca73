-- takers: the live agents that may take tasks of a lane, and what each has in hand.
--
-- Whether the lane is open is another question, see open_lanes; so is whether an agent has room.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.takers(p_lane treadle.lanes, p_now timestamptz)
returns table (agent treadle.agents, held bigint, has_room boolean)
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select
    agents,
    hand.held,
    coalesce(agents.max_concurrent_tasks > hand.held, true)
  from treadle.agents
  cross join lateral (
    select count(*) as held
    from treadle.tasks
    where
      tasks.agent_id = agents.id and tasks.status in ('claimed', 'running', 'validating')
  ) as hand
  where
    treadle.is_live(agents, p_now)
    and p_lane.queue = any (agents.queues)
    and (agents.task_types is null or p_lane.type = any (agents.task_types))
    and treadle.suits(p_lane, agents)
  order by agents.id
$$;

comment on function treadle.takers(treadle.lanes, timestamptz) is
'Internal: who could claim from a lane, how many tasks each holds, and whether it may hold more.';

revoke all on function treadle.takers(treadle.lanes, timestamptz) from public;
