-- harness_tasks: the tasks of the harness in the words of its protocol, and the action of each.
--
-- A task of the queue that has no agent is none of them; an output that is no object, no decision.
-- An action whose harness gave no sign of life is interrupted, also while nobody has written so.

create view treadle.harness_tasks as
select
  tasks.id as task_id,
  tasks.assigned_agent as agent_url,
  case
    when tasks.status in ('claimed', 'running', 'validating') then 'claimed'
    when tasks.status = 'completed' and tasks.consumed_at is not null then 'done'
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
    when harness_actions.status = 'executing' and harness_actions.lease_until < treadle.clock()
      then 'interrupted'
    else harness_actions.status
  end as action,
  harness_actions.tries as action_tries,
  harness_actions.started_at as action_started_at,
  harness_actions.ended_at as action_ended_at,
  harness_actions.next_try_at as action_next_try_at,
  harness_actions.error as action_error
from treadle.tasks
left join treadle.harness_actions on tasks.id = harness_actions.task_id
where tasks.queue = 'harness' and tasks.assigned_agent is not null;

comment on view treadle.harness_tasks is
'Tasks of the harness: pending, claimed, completed, done or failed, and the action of each.';

grant select on treadle.harness_tasks to treadle_observer, treadle_operator;
