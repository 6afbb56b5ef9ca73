-- define_webhook: create or change a webhook; settings that are not given stay as they are.
--
-- select treadle.define_webhook('ops', '{"url": "https://example.org/in", "kinds": ["task.*"]}');
--
-- The secret is returned once, when the webhook is created. A new webhook starts with new events;
-- with from_start it starts with the oldest event that is kept. Also returns whether it is new.
--
-- Concurrency: one row; a delivery in progress uses the old settings.
-- Lock order:  webhooks, readers.
-- Raises:      TR001 invalid argument.

-- find_webhook: lock and return the row of a webhook.
--
-- Concurrency: waits for the lock.
-- Lock order:  webhooks.
-- Raises:      TR213 unknown webhook.
create or replace function treadle.find_webhook(p_name text)
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
    perform treadle.raise_error(
      format('there is no webhook %s', left(quote_nullable(p_name), 100)),
      jsonb_build_object('webhook', left(p_name, 200)), 'To list them: treadle webhooks', 'TR213'
    );
  end if;
  return v_hook;
end;
$$;

-- emit_webhook_event: write an event about a webhook.
create or replace function treadle.emit_webhook_event(
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

-- check_webhook: check the settings of a webhook.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_webhook(p_hook treadle.webhooks)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  v_problem := case
    when (p_hook).name !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$' then
      'name must be 1 to 100 letters, digits, dots, dashes and underscores'
    when coalesce((p_hook).format not in ('standard', 'slack', 'redis'), true) then
      'format must be standard, slack or redis'
    when coalesce(octet_length((p_hook).url) > 2000 or (p_hook).url ~ '[^!-~]', true) then
      'url must be at most 2000 printable ASCII characters'
    when (p_hook).format = 'redis' and (p_hook).url !~ '^rediss?://[^/?#]' then
      'the url of a redis stream must begin with redis:// or rediss://'
    when (p_hook).format <> 'redis' and (p_hook).url ~ '^rediss?://' then
      'a redis url needs the name of a stream and "format": "redis"'
    when (p_hook).format <> 'redis' and (p_hook).url !~ '^https?://[^/?#@]+([/?][^#]*)?$' then
      'url must be https:// with a host, without user, password or fragment'
    when (p_hook).format = 'redis' and ((p_hook).stream = '') is not false then
      'stream must be the name of a redis stream'
    when octet_length((p_hook).stream) > 500 then 'stream must be at most 500 bytes long'
    when (p_hook).max_length not between 1 and 100000000 then 'max_length must be 1 to 100000000'
    when
      coalesce(cardinality((p_hook).kinds) not between 1 and 100, true)
      or (
        select bool_or(coalesce(octet_length(kinds.pattern) not between 1 and 200, true))
        from unnest((p_hook).kinds) as kinds (pattern)
      ) then 'kinds must be 1 to 100 names; * matches any ending'
    when
      jsonb_typeof((p_hook).filter) is distinct from 'object'
      or octet_length((p_hook).filter::text) > 10000 then
      'filter must be a JSON object of at most 10000 bytes'
    when
      (p_hook).secret is not null
      and (
        (p_hook).secret !~ '^whsec_([A-Za-z0-9+/]{4})+([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'
        or octet_length((p_hook).secret) not between 38 and 94
      ) then 'secret must be whsec_ and 24 to 64 bytes in base64'
  end;
  if v_problem is not null then
    perform treadle.raise_error(
      format('webhook %s: %s', left(quote_nullable((p_hook).name), 60), v_problem),
      jsonb_build_object('argument', split_part(v_problem, ' ', 1)),
      'See treadle webhooks create --help for examples.'
    );
  end if;
  perform treadle.check_kinds((p_hook).kinds, true, 'kinds');
  perform treadle.check_event_filter(
    (p_hook).filter,
    array[
      'id', 'type', 'timestamp', 'task_id', 'task_type', 'dag_id', 'queue', 'key', 'actor', 'data'
    ]
  );
end;
$$;

-- store_webhook: insert or update the row that define_webhook has checked; true if it is new.
--
-- Concurrency: the caller has locked the row if it exists.
-- Lock order:  webhooks.
create or replace function treadle.store_webhook(
  p_hook   treadle.webhooks,
  p_actor  text
)
returns boolean
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
-- Only a row that this statement inserts has no xmax.
returning stored.xmax = 0
$$;

-- set_webhook_cursor: set where a new webhook starts: now, or at the oldest event.
--
-- Concurrency: events of open transactions count as later, so none is missed.
-- Lock order:  readers.
create or replace function treadle.set_webhook_cursor(p_name text, p_from_start boolean)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
insert into treadle.event_readers (name, xid, id)
values (
  'webhook:' || p_name,
  case
    when p_from_start then '0'::pg_catalog.xid8
    else treadle.stable_xid()
  end,
  0
)
on conflict (name) do update
set xid = excluded.xid, id = 0
$$;

create or replace function treadle.define_webhook(
  p_name       text,
  p_settings   jsonb default '{}',
  p_actor      text default null,
  out secret   text,
  out created  boolean
)
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
  v_new := jsonb_populate_record(
    v_old,
    jsonb_build_object('name', p_name, 'format', coalesce(v_old.format, 'standard'))
    || case when v_old.name is null then c_new else '{}' end
    || (p_settings - 'from_start')
  );
  if v_new.format = 'redis' then
    v_new.secret := null;
  else
    v_new.stream := null;
    v_new.secret := coalesce(v_new.secret, treadle.new_secret());
  end if;
  perform treadle.check_webhook(v_new);
  perform treadle.ensure_durable();
  created := treadle.store_webhook(v_new, p_actor);
  if created or p_settings ? 'from_start' then
    perform treadle.set_webhook_cursor(
      p_name, coalesce((p_settings ->> 'from_start')::boolean, false)
    );
  end if;
  perform treadle.emit_webhook_event(
    case when created then 'added' else 'changed' end, p_name, p_actor
  );
  secret := case when v_old.secret is distinct from v_new.secret then v_new.secret end;
exception
  when data_exception or not_null_violation then
    perform treadle.raise_error(
      format('webhook %s cannot be defined: %s', left(quote_nullable(p_name), 60), sqlerrm),
      jsonb_build_object('argument', 'webhook'), 'See treadle webhooks create --help for examples.'
    );
end;
$$;

comment on function treadle.define_webhook(text, jsonb, text) is
'Create or change a webhook. Returns the secret of a new webhook: store it.';

grant execute on function treadle.define_webhook(text, jsonb, text) to treadle_operator;
