-- webhook_named: the row of a webhook, locked.
--
-- Concurrency: waits for who else changes it.
-- Lock order:  webhooks.
-- Raises:      TR213 unknown webhook.

create or replace function treadle.webhook_named(p_name text)
returns treadle.webhooks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hook treadle.webhooks;
begin
  select webhooks.* into v_hook
  from treadle.webhooks
  where webhooks.name = p_name
  for no key update;
  if not found then
    perform treadle.refuse(
      format('there is no webhook %s', left(quote_nullable(p_name), 100)),
      jsonb_build_object('webhook', left(p_name, 200)), 'List them: treadle webhooks', 'TR213'
    );
  end if;
  return v_hook;
end;
$$;

comment on function treadle.webhook_named(text) is
'Internal: locks a webhook and returns it; refuses a name that nobody has.';

revoke all on function treadle.webhook_named(text) from public;
