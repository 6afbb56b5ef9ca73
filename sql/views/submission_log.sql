-- submission_log: every submission of a task to an agent: where, when, how it ended.

create view treadle.submission_log as
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

comment on view treadle.submission_log is
'One row per submission to an agent; without an end it is being followed until lease_until.';

grant select on treadle.submission_log to treadle_observer, treadle_operator;
