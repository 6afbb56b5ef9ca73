-- rotate_webhook: give a webhook a new secret; the old one also signs for a while.
--
-- Concurrency: a delivery in progress uses the secrets that it was given.
-- Lock order:  webhooks.
-- Raises:      TR001 invalid argument, TR213 unknown webhook.

create or replace function treadle.rotate_webhook(
  p_name    text,
  p_keep_s  double precision default 86400,
  p_actor   text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hook   treadle.webhooks := treadle.find_webhook(p_name);
  v_secret text := treadle.new_secret();
begin
  if v_hook.secret is null then
    perform treadle.raise_error(
      format('webhook %s is a redis stream, which has no signature', quote_literal(p_name)),
      jsonb_build_object('argument', 'webhook'), 'To change the password, change the url.'
    );
  elsif not coalesce(p_keep_s between 0 and 2592000, false) then
    perform treadle.raise_error(
      'the old secret can be kept for 0 to 2592000 seconds',
      jsonb_build_object('argument', 'keep_s'), 'One day is common: 86400.'
    );
  end if;
  perform treadle.ensure_durable();
  update treadle.webhooks
  set
    secret = v_secret,
    previous_secret = case when p_keep_s > 0 then webhooks.secret end,
    previous_until = case
      when p_keep_s > 0 then treadle.clock() + make_interval(secs => p_keep_s)
    end
  where webhooks.name = p_name;
  perform treadle.emit_webhook_event('rotated', p_name, p_actor);
  return v_secret;
end;
$$;

comment on function treadle.rotate_webhook(text, double precision, text) is
'Change the secret of a webhook; messages carry both signatures for p_keep_s seconds.';

grant execute on function treadle.rotate_webhook(text, double precision, text) to treadle_operator;
