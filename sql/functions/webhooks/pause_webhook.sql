-- pause_webhook: send nothing to a webhook until it is resumed; its events wait.
--
-- Concurrency: a message under way may still arrive.
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
  perform treadle.webhook_named(p_name);
  update treadle.webhooks
  set status = 'paused', reason = coalesce(left(p_reason, 500), webhooks.reason)
  where webhooks.name = p_name;
  perform treadle.tell_webhook(
    'paused', p_name, p_actor, jsonb_build_object('reason', left(p_reason, 500))
  );
end;
$$;

comment on function treadle.pause_webhook(text, text, text) is
'Pause a webhook; nothing is lost, its events wait.';

-- resume_webhook: send to a webhook again, at once and from where it stopped.
--
-- Concurrency: one row.
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
  perform treadle.webhook_named(p_name);
  update treadle.webhooks
  set
    status = 'active',
    reason = null,
    failures = 0,
    failed_since_at = null,
    next_try_at = treadle.clock()
  where webhooks.name = p_name;
  perform treadle.tell_webhook('resumed', p_name, p_actor);
end;
$$;

comment on function treadle.resume_webhook(text, text) is
'Resume a webhook that is paused, or try one that fails again now.';

grant execute on function treadle.pause_webhook(text, text, text) to treadle_operator;
grant execute on function treadle.resume_webhook(text, text) to treadle_operator;
