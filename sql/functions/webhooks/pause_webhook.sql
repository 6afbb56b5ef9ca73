-- pause_webhook: stop deliveries to a webhook until it is resumed; its events wait.
--
-- Concurrency: a message in progress may still arrive.
-- Lock order:  webhooks.
-- Raises:      TR213 unknown webhook.

create or replace function treadle.pause_webhook(
  p_name    text,
  p_reason  text default null,
  p_actor   text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.find_webhook(p_name);
  update treadle.webhooks
  set status = 'paused', reason = coalesce(left(p_reason, 500), webhooks.reason)
  where webhooks.name = p_name;
  perform treadle.emit_webhook_event(
    'paused', p_name, p_actor, jsonb_build_object('reason', left(p_reason, 500))
  );
end;
$$;

comment on function treadle.pause_webhook(text, text, text) is
'Pause a webhook; its events wait, and none is lost.';

-- resume_webhook: resume deliveries to a webhook at once, from where it stopped.
--
-- Lock order:  webhooks.
-- Raises:      TR213 unknown webhook.
create or replace function treadle.resume_webhook(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.find_webhook(p_name);
  update treadle.webhooks
  set
    status = 'active',
    reason = null,
    failures = 0,
    failed_since_at = null,
    next_try_at = treadle.clock()
  where webhooks.name = p_name;
  perform treadle.emit_webhook_event('resumed', p_name, p_actor);
end;
$$;

comment on function treadle.resume_webhook(text, text) is
'Resume a paused webhook, or retry a failing one now.';

grant execute on function treadle.pause_webhook(text, text, text) to treadle_operator;
grant execute on function treadle.resume_webhook(text, text) to treadle_operator;
