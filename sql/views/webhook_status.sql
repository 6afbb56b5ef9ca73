-- webhook_status: every webhook, its state and its progress, without secrets.
--
-- Only the host of the URL is shown: its path and password may be secret.

create view treadle.webhook_status as
select
  webhooks.name,
  webhooks.format,
  regexp_replace(webhooks.url, '^([a-z]+://)([^/?#]*@)?([^/?#]*).*$', '\1\3') as address,
  webhooks.stream,
  webhooks.kinds,
  webhooks.filter,
  webhooks.allow_private,
  webhooks.status,
  webhooks.reason,
  webhooks.failures,
  webhooks.failed_since_at,
  case when webhooks.failures > 0 then webhooks.next_try_at end as next_try_at,
  webhooks.last_status,
  webhooks.last_error,
  webhooks.last_try_at,
  webhooks.delivered,
  webhooks.delivered_at,
  (
    select count(*)
    from (
      select
      from treadle.events
      where (events.xid, events.id) > (event_readers.xid, event_readers.id)
      order by events.xid, events.id
      limit 1000
    ) as news
  ) as unread,
  webhooks.lease_until > (select treadle.view_clock()) as delivering,
  case when webhooks.previous_until > (select treadle.view_clock()) then webhooks.previous_until end
    as rotated_until,
  webhooks.created_at,
  webhooks.created_by
from treadle.webhooks
left join treadle.event_readers on event_readers.name = 'webhook:' || webhooks.name;

comment on view treadle.webhook_status is
'Webhooks: state, failures, next try, deliveries, and unread events.';
comment on column treadle.webhook_status.name is 'Name of the webhook.';
comment on column treadle.webhook_status.format is 'standard, slack or redis.';
comment on column treadle.webhook_status.address is 'Scheme and host of its URL.';
comment on column treadle.webhook_status.stream is 'Name of the redis stream.';
comment on column treadle.webhook_status.kinds is 'Event kinds that it subscribes to.';
comment on column treadle.webhook_status.filter is 'JSON that an event must contain.';
comment on column treadle.webhook_status.allow_private is 'Whether private addresses are allowed.';
comment on column treadle.webhook_status.status is 'active, failing or paused.';
comment on column treadle.webhook_status.reason is 'Why it is paused.';
comment on column treadle.webhook_status.failures is 'Failures in a row.';
comment on column treadle.webhook_status.failed_since_at is
'When the first of these failures occurred.';
comment on column treadle.webhook_status.next_try_at is 'When the next delivery is tried.';
comment on column treadle.webhook_status.last_status is 'HTTP status of the last response.';
comment on column treadle.webhook_status.last_error is 'Text of the last error.';
comment on column treadle.webhook_status.last_try_at is 'When a delivery was tried last.';
comment on column treadle.webhook_status.delivered is 'Events delivered in total.';
comment on column treadle.webhook_status.delivered_at is 'When an event was delivered last.';
comment on column treadle.webhook_status.unread is 'Events that it has not read yet, at most 1000.';
comment on column treadle.webhook_status.delivering is 'Whether a notifier has its lease now.';
comment on column treadle.webhook_status.rotated_until is 'Until when the old secret also signs.';
comment on column treadle.webhook_status.created_at is 'When it was created.';
comment on column treadle.webhook_status.created_by is 'Actor that created it.';

grant select on treadle.webhook_status to treadle_observer, treadle_operator;
