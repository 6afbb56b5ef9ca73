-- receive_webhook: record an incoming webhook call and resume the tasks and triggers waiting for
-- it.
--
-- select treadle.receive_webhook('stripe', '{"type": "invoice.paid"}', p_dedup_key => 'evt_1');
--
-- It emits the event webhook.received with the name as its key, and with payload and headers as its
-- data. The HTTP endpoint that receives the call must authenticate the sender.
--
-- Concurrency: see emit_event.
-- Lock order:  see emit_event.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.receive_webhook(
  p_name       text,
  p_payload    jsonb,
  p_headers    jsonb default '{}',
  p_dedup_key  text default null,
  p_actor      text default null
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(octet_length(p_name) between 1 and 200, false)
    or octet_length(p_dedup_key) not between 1 and 200
    or jsonb_typeof(p_headers) is distinct from 'object' then
    perform treadle.raise_error(
      'name and id must be 1 to 200 bytes long, and headers a JSON object',
      jsonb_build_object('argument', 'name'),
      'For example: select treadle.receive_webhook(''stripe'', ''{"paid": true}'')'
    );
  end if;
  perform treadle.check_document('payload', p_payload);
  perform treadle.check_document('headers', p_headers, 16384);
  return treadle.emit_event(
    'webhook.received', jsonb_build_object('payload', p_payload, 'headers', p_headers),
    p_name,
    -- The same id from two senders is a different event; the separator keeps the pairs unambiguous.
    case when p_dedup_key is not null then
      encode(
        sha256(convert_to(jsonb_build_array(p_name, p_dedup_key)::text, 'UTF8')), 'hex'
      )
    end,
    p_actor
  );
end;
$$;

comment on function treadle.receive_webhook(text, jsonb, jsonb, text, text) is
'Record that a webhook was received, by its name; returns the id of the event.';

grant execute on function treadle.receive_webhook(text, jsonb, jsonb, text, text) to
treadle_producer, treadle_worker, treadle_operator;
