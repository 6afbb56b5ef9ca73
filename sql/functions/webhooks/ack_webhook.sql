-- ack_webhook: record that an event was delivered, and move the cursor of the webhook past it.
--
-- Concurrency: only the holder of the lease; a repeated call counts once.
-- Lock order:  webhooks, readers.

-- record_delivery: record a delivery attempt, and delete old ones of the webhook.
--
-- Concurrency: the caller has locked the webhook.
-- Lock order:  append-only.
create or replace function treadle.record_delivery(
  p_name    text,
  p_event   bigint,
  p_status  integer,
  p_error   text,
  p_ms      integer
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into treadle.webhook_deliveries (webhook, event_id, at, status, error, ms)
  values (p_name, p_event, treadle.clock(), p_status, left(p_error, 500), coalesce(p_ms, 0));
  delete from treadle.webhook_deliveries
  where
    webhook_deliveries.webhook = p_name
    and webhook_deliveries.id <= (
      select kept.id
      from treadle.webhook_deliveries as kept
      where kept.webhook = p_name
      order by kept.id desc
      offset 100
      limit 1
    );
end;
$$;

create or replace function treadle.ack_webhook(
  p_name    text,
  p_token   uuid,
  p_xid     xid8,
  p_id      bigint,
  p_status  integer default null,
  p_ms      integer default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hook treadle.webhooks := treadle.lock_webhook(p_name, p_token);
begin
  if v_hook.name is null then
    return false;
  end if;
  perform treadle.ensure_durable();
  update treadle.event_readers
  set xid = p_xid, id = p_id, read_at = treadle.clock()
  where
    event_readers.name = 'webhook:' || p_name
    and (event_readers.xid, event_readers.id) < (p_xid, p_id);
  if not found then
    return v_hook.status <> 'paused';
  end if;

  update treadle.webhooks
  set
    status = case when v_hook.status = 'paused' then 'paused' else 'active' end,
    failures = 0,
    failed_since_at = null,
    last_status = p_status,
    last_error = null,
    last_try_at = treadle.clock(),
    delivered = webhooks.delivered + 1,
    delivered_at = treadle.clock()
  where webhooks.name = p_name;
  perform treadle.record_delivery(p_name, p_id, p_status, null, p_ms);
  if v_hook.status = 'failing' then
    perform treadle.emit_webhook_event(
      'recovered', p_name, null, jsonb_build_object('failures', v_hook.failures)
    );
  end if;
  return v_hook.status <> 'paused';
end;
$$;

comment on function treadle.ack_webhook(text, uuid, xid8, bigint, integer, integer) is
'Record that an event was delivered; false if the lease is lost or the webhook is paused.';

grant execute on function treadle.ack_webhook(text, uuid, xid8, bigint, integer, integer)
to treadle_operator;
