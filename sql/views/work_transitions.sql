-- work_transitions: what may become of a work item, the one place where it is written down.
--
-- needs is the field without which the change is refused.

create view treadle.work_transitions as
select
  steps.from_status,
  steps.to_status,
  steps.needs,
  steps.why
from (
  values
  (null, 'queued', null, 'new; the dispatcher has not given it to anybody'),
  ('queued', 'dispatched', 'assigned_agent', 'given to an agent, which has not picked it up'),
  ('queued', 'cancelled', null, 'not wanted'),
  ('dispatched', 'in_progress', 'assigned_agent', 'the agent works on it'),
  ('dispatched', 'cancelled', null, 'not wanted'),
  ('in_progress', 'completed', 'outcome', 'done'),
  ('in_progress', 'failed', 'outcome', 'cannot be done'),
  ('in_progress', 'blocked', 'notes', 'waits for something; the notes say for what'),
  ('blocked', 'in_progress', 'assigned_agent', 'goes on')
) as steps (from_status, to_status, needs, why);

comment on view treadle.work_transitions is
'Every change of state that the work API allows, and the field that it needs.';

grant select on treadle.work_transitions to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
