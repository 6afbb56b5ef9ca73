-- work_transitions: the allowed changes of a work item. This is their only definition.
--
-- needs is the field that the change requires.

create view treadle.work_transitions as
select
  steps.from_status,
  steps.to_status,
  steps.needs,
  steps.why
from (
  values
  (null, 'queued', null, 'new; the dispatcher has not given it to an agent'),
  ('queued', 'dispatched', 'assigned_agent', 'given to an agent, which has not started it'),
  ('queued', 'cancelled', null, 'cancelled'),
  ('dispatched', 'in_progress', 'assigned_agent', 'the agent works on it'),
  ('dispatched', 'cancelled', null, 'cancelled'),
  ('in_progress', 'completed', 'outcome', 'done'),
  ('in_progress', 'failed', 'outcome', 'cannot be done'),
  ('in_progress', 'blocked', 'notes', 'waits for what the notes say'),
  ('blocked', 'in_progress', 'assigned_agent', 'the agent continues')
) as steps (from_status, to_status, needs, why);

comment on view treadle.work_transitions is
'Every change of state that the work API allows, and the field that it needs.';
comment on column treadle.work_transitions.from_status is 'Status before; null for a new item.';
comment on column treadle.work_transitions.to_status is 'Status after.';
comment on column treadle.work_transitions.needs is
'Field that the change requires; null for none.';
comment on column treadle.work_transitions.why is 'When the change happens.';

grant select on treadle.work_transitions to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
