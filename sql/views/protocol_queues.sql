-- protocol_queues: the queues of the protocols, and the properties that each has once it is made.
--
-- The only place where the engine finds these names. Agents claim from queues of any other name.

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
'Names that the work, queue and harness protocols use, and the properties of those queues.';

grant select on treadle.protocol_queues to treadle_observer, treadle_operator;
