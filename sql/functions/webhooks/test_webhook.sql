-- test_webhook: return the data to send one test message to a webhook.
--
-- Concurrency: reads only; the cursor of the webhook stays.
-- Raises:      TR213 unknown webhook.

create or replace function treadle.test_webhook(p_name text)
returns table (target treadle.webhook_target, document text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hook  treadle.webhooks := treadle.find_webhook(p_name);
  v_event treadle.events;
begin
  v_event.kind := 'webhook.test';
  v_event.at := treadle.clock();
  v_event.actor := session_user;
  v_event.data := jsonb_build_object('webhook', p_name);
  return query select treadle.delivery_target(v_hook), treadle.event_document(v_event)::text;
end;
$$;

comment on function treadle.test_webhook(text) is
'The target of a webhook and a webhook.test message, for treadle webhooks test.';

grant execute on function treadle.test_webhook(text) to treadle_operator;
