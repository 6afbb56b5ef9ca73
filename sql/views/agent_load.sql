-- agent_load: show what each agent is doing and whether it is alive.

create view treadle.agent_load as
select
  agents.id as agent_id,
  agents.type,
  agents.status,
  agents.status <> 'offline'
  and agents.heartbeat_at + make_interval(secs => 3 * agents.heartbeat_s)
  > (select treadle.view_clock())
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
  (select treadle.view_clock()) - agents.heartbeat_at as heartbeat_age,
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
    and attempts.ended_at > (select treadle.view_clock()) - interval '1 hour'
) as past on true;

comment on view treadle.agent_load is
'One row per agent: status, heartbeat, current tasks, failures of the last hour.';
comment on column treadle.agent_load.agent_id is 'Id of the agent.';
comment on column treadle.agent_load.type is 'Type of the agent, such as worker or push.';
comment on column treadle.agent_load.status is 'active, draining or offline.';
comment on column treadle.agent_load.alive is
'Whether it has sent a heartbeat within the last three intervals.';
comment on column treadle.agent_load.queues is 'Queues that it claims from.';
comment on column treadle.agent_load.task_types is 'Task types that it handles; null for all.';
comment on column treadle.agent_load.capabilities is 'Capabilities that it has.';
comment on column treadle.agent_load.models is 'Models that it can use.';
comment on column treadle.agent_load.max_concurrent_tasks is 'How many tasks it may run at once.';
comment on column treadle.agent_load.current_tasks is 'Tasks that it has claimed now.';
comment on column treadle.agent_load.running is 'Claimed tasks that are running.';
comment on column treadle.agent_load.oldest_claim_at is 'When its oldest current claim was made.';
comment on column treadle.agent_load.failed_1h is 'Attempts of the last hour that failed.';
comment on column treadle.agent_load.budget_usd is 'Limit of its own budget, in dollars.';
comment on column treadle.agent_load.heartbeat_at is 'When it sent its last heartbeat.';
comment on column treadle.agent_load.heartbeat_age is 'Time since its last heartbeat.';
comment on column treadle.agent_load.heartbeat_s is 'Its heartbeat interval, in seconds.';
comment on column treadle.agent_load.claim_ttl_s is 'How many seconds a claim may stay unstarted.';
comment on column treadle.agent_load.url is 'Its URL, if tasks are sent to it.';
comment on column treadle.agent_load.registered_at is 'When it registered first.';
comment on column treadle.agent_load.meta is 'Free JSON data given at registration.';

grant select on treadle.agent_load to treadle_observer, treadle_operator;
