-- tell_webhook: record what somebody did about a webhook.
--
-- Concurrency: appends.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.tell_webhook(
  p_what   text,
  p_name   text,
  p_actor  text,
  p_data   jsonb default '{}'
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
insert into treadle.events (at, kind, actor, data)
values (
  treadle.clock(),
  'webhook.' || p_what,
  coalesce(p_actor, session_user),
  jsonb_build_object('webhook', p_name) || p_data
)
$$;

comment on function treadle.tell_webhook(text, text, text, jsonb) is
'Internal: writes an event about a webhook, without its address or secrets.';

revoke all on function treadle.tell_webhook(text, text, text, jsonb) from public;
