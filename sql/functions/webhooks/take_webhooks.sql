-- take_webhooks: lease webhooks that are due and have events to send.
--
-- Concurrency: skips locked rows; a lease expires by itself.
-- Lock order:  webhooks.
-- Raises:      TR001 invalid argument.

-- has_pending_events: return whether there are events that a webhook has not read.
create or replace function treadle.has_pending_events(p_name text)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
select exists (
  select
  from treadle.event_readers
  cross join lateral treadle.next_events(event_readers.xid, event_readers.id, 1) as news
  where event_readers.name = 'webhook:' || p_name
)
$$;

-- delivery_target: return the data that a notifier needs to send to a webhook.
create or replace function treadle.delivery_target(p_hook treadle.webhooks)
returns treadle.webhook_target
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
select row(
  (p_hook).name,
  (p_hook).id,
  (p_hook).url,
  (p_hook).format,
  (p_hook).stream,
  (p_hook).max_length,
  array_remove(
    array[
      (p_hook).secret,
      case when (p_hook).previous_until > treadle.clock() then (p_hook).previous_secret end
    ],
    null
  ),
  (p_hook).allow_private
)::treadle.webhook_target
$$;

create or replace function treadle.take_webhooks(
  p_token    uuid,
  p_limit    integer default 10,
  p_lease_s  double precision default 60
)
returns setof treadle.webhook_target
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := treadle.clock();
begin
  if not coalesce(p_limit between 1 and 1000 and p_lease_s between 1 and 3600, false)
    or p_token is null then
    perform treadle.raise_error(
      'token is required, limit must be 1 to 1000 and the lease 1 to 3600 seconds',
      jsonb_build_object('argument', 'lease_s')
    );
  end if;
  return query
  with due as materialized (
    select webhooks.name
    from treadle.webhooks
    where
      webhooks.status <> 'paused'
      and webhooks.next_try_at <= v_now
      -- Leases with the same token: the response to the first call was lost.
      and (coalesce(webhooks.lease_until <= v_now, true) or webhooks.token = p_token)
      and treadle.has_pending_events(webhooks.name)
    order by webhooks.next_try_at, webhooks.name
    limit p_limit
    for no key update skip locked
  )

  update treadle.webhooks
  set token = p_token, lease_until = v_now + make_interval(secs => p_lease_s)
  from due
  where webhooks.name = due.name
  returning (treadle.delivery_target(webhooks)).*;
end;
$$;

comment on function treadle.take_webhooks(uuid, integer, double precision) is
'Lease webhooks to deliver to, the longest waiting first; one notifier at a time has each.';

grant execute on function treadle.take_webhooks(uuid, integer, double precision)
to treadle_operator;
