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

-- tell_webhook: record what somebody did about a webhook.
--
-- Concurrency: appends.
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

-- check_webhook: refuse a webhook that could not be sent to.
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
      'name has 1 to 100 letters, digits, dots, dashes and underscores'
    when coalesce((p_hook).format not in ('standard', 'slack', 'redis'), true) then
      'format is standard, slack or redis'
    when coalesce(octet_length((p_hook).url) > 2000 or (p_hook).url ~ '[^!-~]', true) then
      'url has at most 2000 characters, all of them printable ASCII'
    when (p_hook).format = 'redis' and (p_hook).url !~ '^rediss?://[^/?#]' then
      'url of a redis stream begins with redis:// or rediss://'
    when (p_hook).format <> 'redis' and (p_hook).url ~ '^rediss?://' then
      'stream is missing: redis needs the name of a stream, and "format": "redis"'
    when (p_hook).format <> 'redis' and (p_hook).url !~ '^https?://[^/?#@]+([/?][^#]*)?$' then
      'url begins with https:// and a host; it has no user, password or fragment'
    when (p_hook).format = 'redis' and ((p_hook).stream = '') is not false then
      'stream is the name of the redis stream'
    when octet_length((p_hook).stream) > 500 then 'stream has at most 500 bytes'
    when (p_hook).max_length not between 1 and 100000000 then 'max_length is 1 to 100000000'
    when
      coalesce(cardinality((p_hook).kinds) not between 1 and 100, true)
      or (
        select bool_or(coalesce(octet_length(kinds.pattern) not between 1 and 200, true))
        from unnest((p_hook).kinds) as kinds (pattern)
      ) then 'kinds are 1 to 100 names, with * for any ending'
    when
      jsonb_typeof((p_hook).filter) is distinct from 'object'
      or octet_length((p_hook).filter::text) > 10000 then
      'filter is a json object of at most 10000 bytes'
    when
      (p_hook).secret is not null
      and (
        (p_hook).secret !~ '^whsec_([A-Za-z0-9+/]{4})+([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'
        or octet_length((p_hook).secret) not between 38 and 94
      ) then 'secret is whsec_ and 24 to 64 bytes in base64'
  end;
  if v_problem is not null then
    perform treadle.refuse(
      format('webhook %s: %s', left(quote_nullable((p_hook).name), 60), v_problem),
      jsonb_build_object('argument', split_part(v_problem, ' ', 1)),
      'treadle webhooks add --help shows examples.'
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

-- store_webhook: write what define_webhook has checked.
--
-- Concurrency: the caller holds the row, if there is one.
-- Lock order:  webhooks.
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

-- place_webhook: let a new webhook begin now, or with the oldest event.
--
-- Concurrency: events of transactions that are still open count as later, so none is missed.
-- Lock order:  readers.
create or replace function treadle.place_webhook(p_name text, p_from_start boolean)
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
    else treadle.settled_before()
  end,
  0
)
on conflict (name) do update
set xid = excluded.xid, id = 0
$$;

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

grant execute on function treadle.define_webhook(text, jsonb, text) to treadle_operator;
