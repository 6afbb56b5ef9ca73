-- store_webhook: write what define_webhook has checked.
--
-- Concurrency: the caller holds the row, if there is one.
-- Lock order:  webhooks.
-- Raises:      nothing.

create or replace function treadle.store_webhook(
  p_hook   treadle.webhooks,
  p_made   boolean,
  p_actor  text
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
insert into treadle.webhooks as stored (
  name, url, format, stream, max_length, kinds, filter, secret, allow_private, next_try_at,
  created_at, created_by
)
values (
  (p_hook).name, (p_hook).url, (p_hook).format, (p_hook).stream, (p_hook).max_length,
  (p_hook).kinds, (p_hook).filter, (p_hook).secret, (p_hook).allow_private, treadle.clock(),
  treadle.clock(), coalesce(p_actor, session_user)
)
on conflict (name) do update
set
  url = excluded.url,
  format = excluded.format,
  stream = excluded.stream,
  max_length = excluded.max_length,
  kinds = excluded.kinds,
  filter = excluded.filter,
  secret = excluded.secret,
  allow_private = excluded.allow_private,
  next_try_at = least(stored.next_try_at, excluded.next_try_at)
$$;

comment on function treadle.store_webhook(treadle.webhooks, boolean, text) is
'Internal: makes or changes the row of a webhook.';

revoke all on function treadle.store_webhook(treadle.webhooks, boolean, text) from public;
