-- note_delivery: keep a try, and only the last of a webhook.
--
-- Concurrency: the caller holds the webhook.
-- Lock order:  append-only.
-- Raises:      nothing.

create or replace function treadle.note_delivery(
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

comment on function treadle.note_delivery(text, bigint, integer, text, integer) is
'Internal: records one try of a webhook; a hundred are kept.';

revoke all on function treadle.note_delivery(text, bigint, integer, text, integer) from public;
