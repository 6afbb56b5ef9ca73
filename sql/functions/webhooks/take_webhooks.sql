-- take_webhooks: lease endpoints that are due and have something to be sent.
--
-- Concurrency: rows that others hold are passed by; a lease ends by itself.
-- Lock order:  webhooks.
-- Raises:      TR001 invalid argument.

-- has_news: whether there are events that a webhook has not looked at.
create or replace function treadle.has_news(p_name text)
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

-- target_of: what it takes to send to a webhook.
create or replace function treadle.target_of(p_hook treadle.webhooks)
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
    perform treadle.refuse(
      'a lease needs a token, 1 to 1000 webhooks and 1 to 3600 seconds',
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
      -- With its own token: the answer to the first call was lost.
      and (coalesce(webhooks.lease_until <= v_now, true) or webhooks.token = p_token)
      and treadle.has_news(webhooks.name)
    order by webhooks.next_try_at, webhooks.name
    limit p_limit
    for no key update skip locked
  )

  update treadle.webhooks
  set token = p_token, lease_until = v_now + make_interval(secs => p_lease_s)
  from due
  where webhooks.name = due.name
  returning (treadle.target_of(webhooks)).*;
end;
$$;

comment on function treadle.take_webhooks(uuid, integer, double precision) is
'Lease webhooks to deliver to, the longest waiting first; one notifier at a time has one.';

grant execute on function treadle.take_webhooks(uuid, integer, double precision)
to treadle_operator;
