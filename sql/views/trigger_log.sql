-- trigger_log: what triggers made of which event, or why they could not.

create view treadle.trigger_log as
select
  triggers.name as trigger,
  trigger_fires.event_id,
  events.kind,
  trigger_fires.fired_at,
  trigger_fires.verdict,
  trigger_fires.task_id,
  trigger_fires.dag_id,
  trigger_fires.depth,
  trigger_fires.problem
from treadle.trigger_fires
inner join treadle.triggers on trigger_fires.trigger_id = triggers.id
left join treadle.events on trigger_fires.event_id = events.id;

comment on view treadle.trigger_log is
'Each time a trigger fired, was kept from it, or failed: the event and what was made.';

grant select on treadle.trigger_log to treadle_observer, treadle_operator;
