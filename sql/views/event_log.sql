-- event_log: all events by id. Readers that must not miss any use read_events.

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

comment on view treadle.event_log is 'All events, each with its kind, subject, actor and data.';
comment on column treadle.event_log.id is
'Id of the event; it does not give the order in which events are read.';
comment on column treadle.event_log.at is 'When it happened.';
comment on column treadle.event_log.kind is 'Kind of the event.';
comment on column treadle.event_log.task_id is 'Task that the event is about.';
comment on column treadle.event_log.dag_id is 'DAG that the event is about.';
comment on column treadle.event_log.queue is 'Queue that the event is about.';
comment on column treadle.event_log.actor is 'Actor that did it.';
comment on column treadle.event_log.key is 'Key of the event, such as a name.';
comment on column treadle.event_log.data is 'Data of the event.';

grant select on treadle.event_log to treadle_observer, treadle_operator;
