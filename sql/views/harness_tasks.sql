-- harness_tasks: the tasks of the harness and their actions, as the harness protocol names them.
--
-- Tasks of the queue without an agent are left out, and an output that is not an object is not a
-- decision. An action whose harness sent no heartbeat counts as interrupted, even before that is
-- stored.

create view treadle.harness_tasks as
select
  tasks.id as task_id,
  tasks.assigned_agent as agent_url,
  case
    when tasks.status in ('claimed', 'running', 'validating') then 'claimed'
    when tasks.status = 'completed' and results.consumed_at is not null then 'done'
    when tasks.status = 'completed' then 'completed'
    when tasks.status in ('dead_lettered', 'cancelled') then 'failed'
    else 'pending'
  end as status,
  tasks.spec as payload,
  tasks.created_at,
  tasks.claimed_at,
  case when tasks.status = 'completed' then tasks.completed_at end as completed_at,
  case when jsonb_typeof(tasks.output) = 'object' then tasks.output end as result,
  case
    when tasks.status in ('created', 'pending', 'ready', 'retrying', 'blocked')
      then tasks.attempt::integer
    else greatest(tasks.attempt - 1, 0)
  end as retry_count,
  tasks.max_attempts - 1 as max_retries,
  tasks.heartbeat_at as last_heartbeat,
  tasks.lease_until as claim_until,
  tasks.failure_reason as last_error,
  case
    when
      harness_actions.status = 'executing'
      and harness_actions.lease_until < (select treadle.view_clock())
      then 'interrupted'
    else harness_actions.status
  end as action,
  harness_actions.tries as action_tries,
  harness_actions.started_at as action_started_at,
  harness_actions.ended_at as action_ended_at,
  harness_actions.next_try_at as action_next_try_at,
  harness_actions.error as action_error
from treadle.tasks
left join treadle.results on tasks.id = results.task_id
left join treadle.harness_actions on tasks.id = harness_actions.task_id
where tasks.queue = 'harness' and tasks.assigned_agent is not null;

comment on view treadle.harness_tasks is
'Harness tasks: pending, claimed, completed, done or failed, and the action of each.';
comment on column treadle.harness_tasks.task_id is 'Id of the task.';
comment on column treadle.harness_tasks.agent_url is 'URL of the agent.';
comment on column treadle.harness_tasks.status is 'pending, claimed, completed, done or failed.';
comment on column treadle.harness_tasks.payload is 'Payload of the task.';
comment on column treadle.harness_tasks.created_at is 'When it was created.';
comment on column treadle.harness_tasks.claimed_at is 'When the attempt was claimed.';
comment on column treadle.harness_tasks.completed_at is 'When the agent stored its decision.';
comment on column treadle.harness_tasks.result is 'Decision of the agent.';
comment on column treadle.harness_tasks.retry_count is 'How often the task was requeued.';
comment on column treadle.harness_tasks.max_retries is 'How often it may be requeued.';
comment on column treadle.harness_tasks.last_heartbeat is 'When the agent sent its last heartbeat.';
comment on column treadle.harness_tasks.claim_until is 'When the claim expires.';
comment on column treadle.harness_tasks.last_error is 'Text of the last error.';
comment on column treadle.harness_tasks.action is 'State of its action in the action log.';
comment on column treadle.harness_tasks.action_tries is 'How often the action was tried.';
comment on column treadle.harness_tasks.action_started_at is 'When the action was started last.';
comment on column treadle.harness_tasks.action_ended_at is 'When the action ended.';
comment on column treadle.harness_tasks.action_next_try_at is 'When the action is tried again.';
comment on column treadle.harness_tasks.action_error is 'Error of the last try.';

grant select on treadle.harness_tasks to treadle_observer, treadle_operator;
