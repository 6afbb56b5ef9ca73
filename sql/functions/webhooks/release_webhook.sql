-- release_webhook: release the lease of a webhook, so that other notifiers can deliver.
--
-- Concurrency: only the holder of the lease.
-- Lock order:  webhooks.

create or replace function treadle.release_webhook(p_name text, p_token uuid)
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
update treadle.webhooks
set
  token = null,
  lease_until = null,
  -- Moves it behind the other webhooks.
  next_try_at = greatest(webhooks.next_try_at, treadle.clock())
where webhooks.name = p_name and webhooks.token = p_token
$$;

comment on function treadle.release_webhook(text, uuid) is
'End the lease of a webhook.';

grant execute on function treadle.release_webhook(text, uuid) to treadle_operator;
