-- target_of: what it takes to send to a webhook.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.target_of(treadle.webhooks) is
'Internal: the address of a webhook and the secrets that sign for it now.';

revoke all on function treadle.target_of(treadle.webhooks) from public;
