-- agent_load: what each agent is doing and whether it lives.

create view treadle.agent_load as
select
  agents.id as agent_id,
  agents.type,
  agents.status,
  agents.status <> 'offline'
  and agents.heartbeat_at + make_interval(secs => 3 * agents.heartbeat_s) > clock_timestamp()
    as alive,
  agents.queues,
  agents.task_types,
  agents.capabilities,
  agents.models,
  agents.max_concurrent_tasks,
  coalesce(held.tasks, 0) as current_tasks,
  coalesce(held.running, 0) as running,
  held.oldest_claim_at,
  coalesce(past.failed_1h, 0) as failed_1h,
  money.limit_usd as budget_usd,
  agents.heartbeat_at,
  clock_timestamp() - agents.heartbeat_at as heartbeat_age,
  agents.heartbeat_s,
  agents.claim_ttl_s,
  agents.url,
  agents.registered_at,
  agents.meta
from treadle.agents
left join lateral (
  select
    count(*) as tasks,
    count(*) filter (where tasks.status = 'running') as running,
    min(tasks.claimed_at) as oldest_claim_at
  from treadle.tasks
  where
    tasks.agent_id = agents.id and tasks.status in ('claimed', 'running', 'validating')
) as held on true
left join treadle.budgets as money
  on money.scope = 'agent' and agents.id = money.scope_key and money.period is null
left join lateral (
  select count(*) as failed_1h
  from treadle.attempts
  where
    attempts.agent_id = agents.id
    and attempts.outcome = 'failed'
    and attempts.ended_at > clock_timestamp() - interval '1 hour'
) as past on true;

comment on view treadle.agent_load is
'One row per agent: status, sign of life, tasks in hand, failures of the last hour.';

grant select on treadle.agent_load to treadle_observer, treadle_operator;
