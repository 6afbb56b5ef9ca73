-- webhook_status: every webhook, how it is doing and how far it has come. No secrets.
--
-- Of the address only the host: paths and passwords in it are secrets too.

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
  webhooks.lease_until > treadle.clock() as delivering,
  case when webhooks.previous_until > treadle.clock() then webhooks.previous_until end
    as rotated_until,
  webhooks.created_at,
  webhooks.created_by
from treadle.webhooks
left join treadle.event_readers on event_readers.name = 'webhook:' || webhooks.name;

comment on view treadle.webhook_status is
'Webhooks: failures, the next try, what was delivered, and up to 1000 events not looked at.';

grant select on treadle.webhook_status to treadle_observer, treadle_operator;
