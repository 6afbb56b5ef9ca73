-- event_log: what happened, by id; readers that must miss nothing use read_events.

create view treadle.event_log as
select
  events.id,
  events.at,
  events.kind,
  events.task_id,
  events.dag_id,
  events.queue,
  events.actor,
  events.key,
  events.data
from treadle.events;

comment on view treadle.event_log is 'What happened: kind, what it is about, who did it.';

grant select on treadle.event_log to treadle_observer, treadle_operator;
