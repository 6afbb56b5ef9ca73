-- next_webhook_at: when a notifier has something to do.

create or replace function treadle.next_webhook_at()
returns timestamptz
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
-- Also events that are not certain yet: they soon will be.
select min(greatest(webhooks.next_try_at, webhooks.lease_until))
from treadle.webhooks
inner join treadle.event_readers on event_readers.name = 'webhook:' || webhooks.name
where
  webhooks.status <> 'paused'
  and exists (
    select
    from treadle.events
    where (events.xid, events.id) > (event_readers.xid, event_readers.id)
  )
$$;

comment on function treadle.next_webhook_at() is
'When the next webhook is due; null when all of them have seen everything.';

grant execute on function treadle.next_webhook_at() to treadle_operator;
