-- delivery_log: the last tries of every webhook: which event, what was answered, how long it took.

create view treadle.delivery_log as
select
  webhook_deliveries.webhook,
  webhook_deliveries.id,
  webhook_deliveries.at,
  webhook_deliveries.event_id,
  events.kind,
  webhook_deliveries.status,
  webhook_deliveries.error,
  webhook_deliveries.ms
from treadle.webhook_deliveries
left join treadle.events on webhook_deliveries.event_id = events.id;

comment on view treadle.delivery_log is
'Tries to deliver events, the last hundred of each webhook; an error says what went wrong.';

grant select on treadle.delivery_log to treadle_observer, treadle_operator;
