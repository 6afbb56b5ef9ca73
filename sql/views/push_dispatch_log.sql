-- push_dispatch_log: every submission of a task to a push agent: URL, times and outcome.

create view treadle.push_dispatch_log as
select
  'queue-' || dispatches.task_id as queue_id,
  dispatches.task_id,
  dispatches.number,
  dispatches.attempt,
  dispatches.agent_id,
  dispatches.agent_url,
  dispatches.agent_task_id,
  dispatches.session_id,
  dispatches.sent_at,
  dispatches.accepted_at,
  dispatches.ended_at,
  dispatches.outcome,
  dispatches.error,
  dispatches.heard_at,
  dispatches.lease_until
from treadle.dispatches;

comment on view treadle.push_dispatch_log is
'One row per submission to a push agent; an open one is followed until lease_until.';
comment on column treadle.push_dispatch_log.queue_id is
'Id in the queue interface: queue- and the task id.';
comment on column treadle.push_dispatch_log.task_id is 'Id of the task.';
comment on column treadle.push_dispatch_log.number is
'Number of the submission, as the agent sees it.';
comment on column treadle.push_dispatch_log.attempt is 'Attempt of the task.';
comment on column treadle.push_dispatch_log.agent_id is 'Id of the agent.';
comment on column treadle.push_dispatch_log.agent_url is 'URL of the agent.';
comment on column treadle.push_dispatch_log.agent_task_id is 'Id that the agent gave the task.';
comment on column treadle.push_dispatch_log.session_id is 'Session of the agent.';
comment on column treadle.push_dispatch_log.sent_at is 'When it was sent.';
comment on column treadle.push_dispatch_log.accepted_at is 'When the agent accepted it.';
comment on column treadle.push_dispatch_log.ended_at is 'When it ended; null while it is followed.';
comment on column treadle.push_dispatch_log.outcome is 'How it ended.';
comment on column treadle.push_dispatch_log.error is 'Error of the submission.';
comment on column treadle.push_dispatch_log.heard_at is 'When the agent responded last.';
comment on column treadle.push_dispatch_log.lease_until is 'Until when a dispatcher follows it.';

grant select on treadle.push_dispatch_log to treadle_observer, treadle_operator;
