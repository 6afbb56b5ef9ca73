-- webhook_delivery_log: the last delivery attempts of every webhook: event, response and duration.

create view treadle.webhook_delivery_log as
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

comment on view treadle.webhook_delivery_log is
'Delivery attempts, the last hundred of each webhook.';
comment on column treadle.webhook_delivery_log.webhook is 'Name of the webhook.';
comment on column treadle.webhook_delivery_log.id is 'Id of the delivery attempt.';
comment on column treadle.webhook_delivery_log.at is 'When it was sent.';
comment on column treadle.webhook_delivery_log.event_id is 'Id of the event.';
comment on column treadle.webhook_delivery_log.kind is 'Kind of the event.';
comment on column treadle.webhook_delivery_log.status is
'HTTP status of the response; null without a response.';
comment on column treadle.webhook_delivery_log.error is 'What went wrong; null for a success.';
comment on column treadle.webhook_delivery_log.ms is 'Duration in milliseconds.';

grant select on treadle.webhook_delivery_log to treadle_observer, treadle_operator;
