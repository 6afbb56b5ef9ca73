-- next_webhook_at: return when a webhook is due next.

create or replace function treadle.next_webhook_at()
returns timestamptz
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
-- Includes events that are not final yet, because they soon will be.
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
'When the next webhook is due; null if all of them have received everything.';

grant execute on function treadle.next_webhook_at() to treadle_operator;
