-- remove_webhook: remove a webhook with its cursor and its delivery log.
--
-- Concurrency: a message in progress may still arrive.
-- Lock order:  webhooks, readers.
-- Raises:      TR213 unknown webhook.

create or replace function treadle.remove_webhook(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.find_webhook(p_name);
  delete from treadle.webhooks where webhooks.name = p_name;
  delete from treadle.webhook_deliveries where webhook_deliveries.webhook = p_name;
  delete from treadle.event_readers where event_readers.name = 'webhook:' || p_name;
  perform treadle.emit_webhook_event('removed', p_name, p_actor);
end;
$$;

comment on function treadle.remove_webhook(text, text) is
'Remove a webhook; events that it has not received are no longer sent.';

grant execute on function treadle.remove_webhook(text, text) to treadle_operator;
