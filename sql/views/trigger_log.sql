-- trigger_log: what triggers created for which event, or why they could not.

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
'Each time a trigger fired, reached a limit or failed: the event and what was created.';
comment on column treadle.trigger_log.trigger is 'Name of the trigger.';
comment on column treadle.trigger_log.event_id is 'Id of the event.';
comment on column treadle.trigger_log.kind is 'Kind of the event.';
comment on column treadle.trigger_log.fired_at is 'When it fired or was tried.';
comment on column treadle.trigger_log.verdict is 'fired, refused, failed or waiting.';
comment on column treadle.trigger_log.task_id is 'Task that it created.';
comment on column treadle.trigger_log.dag_id is 'DAG that it created.';
comment on column treadle.trigger_log.depth is 'Number of triggers in the chain.';
comment on column treadle.trigger_log.problem is 'Why it could not fire.';

grant select on treadle.trigger_log to treadle_observer, treadle_operator;
