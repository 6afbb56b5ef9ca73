-- define_webhook: make a webhook, or change it; what is not named stays as it is.
--
-- select treadle.define_webhook('ops', '{"url": "https://example.org/in", "kinds": ["task.*"]}');
--
-- The secret is returned once, when it is made. A new webhook begins with what happens from now on,
-- with from_start with the oldest event that is kept.
--
-- Concurrency: one row; a delivery under way goes on with what it was given.
-- Lock order:  webhooks, readers.
-- Raises:      TR001 invalid argument.

create or replace function treadle.define_webhook(
  p_name      text,
  p_settings  jsonb default '{}',
  p_actor     text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_new  constant jsonb
  := '{"kinds": ["*"], "filter": {}, "allow_private": false, "max_length": 100000}';
  v_old  treadle.webhooks;
  v_new  treadle.webhooks;
  v_made boolean;
begin
  perform treadle.check_settings(
    p_settings,
    array[
      'url', 'format', 'stream', 'max_length', 'kinds', 'filter', 'allow_private', 'secret',
      'from_start'
    ]
  );
  select webhooks.* into v_old
  from treadle.webhooks
  where webhooks.name = p_name
  for no key update;
  v_made := not found;
  v_new := jsonb_populate_record(
    v_old,
    jsonb_build_object('name', p_name, 'format', coalesce(v_old.format, 'standard'))
    || case when v_made then c_new else '{}' end
    || (p_settings - 'from_start')
  );
  if v_new.format = 'redis' then
    v_new.secret := null;
  else
    v_new.stream := null;
    v_new.secret := coalesce(v_new.secret, treadle.new_secret());
  end if;
  perform treadle.check_webhook(v_new);
  perform treadle.keep_durable();
  perform treadle.store_webhook(v_new, v_made, p_actor);
  if v_made or p_settings ? 'from_start' then
    perform treadle.place_webhook(
      p_name, coalesce((p_settings ->> 'from_start')::boolean, false)
    );
  end if;
  perform treadle.tell_webhook(case when v_made then 'added' else 'changed' end, p_name, p_actor);
  return case when v_old.secret is distinct from v_new.secret then v_new.secret end;
exception
  when data_exception or not_null_violation then
    perform treadle.refuse(
      format('webhook %s cannot be defined so: %s', left(quote_nullable(p_name), 60), sqlerrm),
      jsonb_build_object('argument', 'webhook'), 'treadle webhooks add --help shows examples.'
    );
end;
$$;

comment on function treadle.define_webhook(text, jsonb, text) is
'Make a webhook or change its settings. Returns the secret when it is new: keep it.';

revoke all on function treadle.define_webhook(text, jsonb, text) from public;
grant execute on function treadle.define_webhook(text, jsonb, text) to treadle_operator;
