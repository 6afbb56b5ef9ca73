-- hold_webhook: lock a webhook for whoever has its lease, and renew it.
--
-- Concurrency: a lease that ran out and was taken by nobody is still good: the token tells.
-- Lock order:  webhooks.
-- Raises:      nothing.

create or replace function treadle.hold_webhook(
  p_name     text,
  p_token    uuid,
  p_lease_s  double precision default 60
)
returns treadle.webhooks
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
update treadle.webhooks
set
  lease_until = greatest(
    webhooks.lease_until, treadle.clock() + make_interval(secs => p_lease_s)
  )
where webhooks.name = p_name and webhooks.token = p_token
returning webhooks.*
$$;

comment on function treadle.hold_webhook(text, uuid, double precision) is
'Internal: the webhook, if the token is that of its lease.';

revoke all on function treadle.hold_webhook(text, uuid, double precision) from public;
