-- protocol_queues: the queues of the protocols, and the properties that each gets when it is
-- created.
--
-- The engine knows these names only from here. Agents claim from queues with any other name.

create view treadle.protocol_queues as
select
  presets.name,
  presets.assignment,
  presets.hold,
  presets.on_lease_expiry,
  presets.keep_changes
from (
  values
  ('work', 'manual', true, 'block', true),
  ('push', 'dispatch', false, 'fail', false),
  ('harness', 'claim', false, 'fail', false)
) as presets (name, assignment, hold, on_lease_expiry, keep_changes);

comment on view treadle.protocol_queues is
'Queue names of the work, queue and harness protocols, and the properties of those queues.';
comment on column treadle.protocol_queues.name is 'Name of the queue.';
comment on column treadle.protocol_queues.assignment is
'How tasks reach agents: claim, manual or dispatch.';
comment on column treadle.protocol_queues.hold is
'Whether new tasks are held until they are released.';
comment on column treadle.protocol_queues.on_lease_expiry is
'What an expired claim does: fail or block.';
comment on column treadle.protocol_queues.keep_changes is
'Whether changes are written to the log of work items.';

grant select on treadle.protocol_queues to treadle_observer, treadle_operator;
