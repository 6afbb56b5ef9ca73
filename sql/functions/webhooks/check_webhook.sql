-- check_webhook: refuse a webhook that could not be sent to.
--
-- Concurrency: none.
-- Lock order:  none.
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

comment on function treadle.check_webhook(treadle.webhooks) is
'Internal: checks name, address, kinds, filter and secret of a webhook.';

revoke all on function treadle.check_webhook(treadle.webhooks) from public;
