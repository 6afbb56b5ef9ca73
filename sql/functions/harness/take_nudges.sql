-- take_nudges: return the agents to be notified now that they have a task.
--
-- One nudge for each time that a task becomes pending, for the next hundred tasks of an agent. It
-- is recorded before it is sent: a lost nudge is not repeated, since agents also poll.
--
-- Concurrency: of two concurrent calls one gets the nudge; the primary key prevents duplicates.
-- Lock order:  harness_nudges.

create or replace function treadle.take_nudges(
  p_limit  integer default 100,
  p_skip   text[] default '{}'
)
returns table (agent_url text, task_id uuid, allow_private boolean)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  return query
  with wanted as materialized (
    select harness_agents.agent_url, harness_agents.allow_private, waiting.id, waiting.attempt
    from treadle.harness_agents
    inner join treadle.lanes
      on lanes.queue = 'harness' and harness_agents.agent_url = lanes.agent_id
    cross join lateral (
      select tasks.id, tasks.attempt
      from treadle.tasks
      where tasks.lane_id = lanes.id and tasks.status = 'ready'
      order by tasks.rank, tasks.id
      limit 100
    ) as waiting
    left join treadle.harness_nudges on waiting.id = harness_nudges.task_id
    where
      harness_agents.allowed
      and harness_agents.agent_url <> all (p_skip)
      and coalesce(harness_nudges.attempt < waiting.attempt, true)
    order by waiting.id
    limit p_limit
  ),

  taken as (
    insert into treadle.harness_nudges (task_id, attempt, nudged_at)
    select wanted.id, wanted.attempt, treadle.clock() from wanted
    on conflict (task_id) do update
    set attempt = excluded.attempt, nudged_at = excluded.nudged_at
    where harness_nudges.attempt < excluded.attempt
    returning harness_nudges.task_id
  )

  select wanted.agent_url, taken.task_id, wanted.allow_private
  from taken
  inner join wanted on taken.task_id = wanted.id
  order by taken.task_id;
end;
$$;

comment on function treadle.take_nudges(integer, text[]) is
'Take nudges to send: agents that operators have allowed, and the tasks that wait for them.';

grant execute on function treadle.take_nudges(integer, text[]) to treadle_worker;
