-- set_concurrency_limit: set how many tasks of a concurrency key may run at once.
--
-- select treadle.set_concurrency_limit('repo:web', 3);
--
-- 0 holds back all of them until an operator sets another limit. If more tasks are running than a
-- lower limit allows, they go on, and no other task starts until they end.
--
-- Concurrency: waits for a session that is assigning slots of this key.
-- Lock order:  concurrency_keys.
-- Raises:      TR001 invalid argument.

create or replace function treadle.set_concurrency_limit(
  p_key    text,
  p_max    integer,
  p_actor  text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  perform treadle.check_key(p_key, p_max, 0);
  perform treadle.ensure_durable();
  insert into treadle.concurrency_keys (key, max) values (p_key, p_max)
  on conflict (key) do update set max = p_max, touched = concurrency_keys.touched + 1;
  -- Requests made before this call do not override it.
  update treadle.admissions
  set max = null
  where admissions.kind = 'slot' and admissions.key = p_key and admissions.max is not null;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'key.limited', coalesce(p_actor, session_user),
    jsonb_build_object('key', p_key, 'max', p_max)
  );
  perform treadle.request_slots(array[p_key]);
end;
$$;

comment on function treadle.set_concurrency_limit(text, integer, text) is
'Set the number of slots of a concurrency key; 0 holds back its tasks.';

-- check_key: check a concurrency key and its limit.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_key(p_key text, p_max integer, p_min integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_key is null then
    perform treadle.raise_error(
      'a concurrency limit needs a concurrency key',
      jsonb_build_object('argument', 'concurrency_key'),
      'Pass both, for example {"concurrency_key": "repo:web", "concurrency_limit": 2}.'
    );
  elsif char_length(p_key) not between 1 and 200 then
    perform treadle.raise_error(
      format('concurrency_key must have 1 to 200 characters, not %s', char_length(p_key)),
      jsonb_build_object('argument', 'concurrency_key'), 'Use a hash of a long key.'
    );
  elsif p_max is null or p_max not between p_min and 1000000 then
    perform treadle.raise_error(
      format('the limit of a concurrency key must be %s to 1000000, not %s', p_min, p_max),
      jsonb_build_object('argument', 'concurrency_limit'),
      'To hold back all of its tasks: select treadle.set_concurrency_limit(key, 0).'
    );
  end if;
end;
$$;

-- key_limit: return how many tasks of a concurrency key may run at once.
create or replace function treadle.key_limit(p_key text)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select concurrency_keys.max from treadle.concurrency_keys where concurrency_keys.key = p_key),
    1
  )
$$;

-- request_key_limit: request a new limit for a concurrency key, as a producer may do.
--
-- The latest commit wins. If the limit is unchanged, nothing is written. The key is not locked: the
-- session that assigns slots applies the limit.
--
-- Concurrency: only inserts.
-- Raises:      TR001 invalid argument.
create or replace function treadle.request_key_limit(p_key text, p_max integer)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.check_key(p_key, p_max, 1);
  if p_max = coalesce(
    (
      select admissions.max
      from treadle.admissions
      where
        admissions.kind = 'slot' and admissions.key = p_key and admissions.max is not null
      order by admissions.id desc
      limit 1
    ),
    treadle.key_limit(p_key)
  ) then
    return;
  end if;
  insert into treadle.admissions (kind, key, max) values ('slot', p_key, p_max);
  perform treadle.notify_promoter(treadle.clock());
end;
$$;

grant execute on function treadle.set_concurrency_limit(text, integer, text) to treadle_operator;
