-- set_concurrency: say how many tasks of a concurrency key may be under way at once.
--
-- select treadle.set_concurrency('repo:web', 3);
--
-- 0 holds all of them back until an operator sets another limit. Tasks that are under way above a
-- lower limit go on; no other starts before they are through.
--
-- Concurrency: waits for who gives slots of this key away.
-- Lock order:  concurrency_keys.
-- Raises:      TR001 invalid argument.

create or replace function treadle.set_concurrency(
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
  perform treadle.keep_durable();
  insert into treadle.concurrency_keys (key, max) values (p_key, p_max)
  on conflict (key) do update set max = p_max, touched = concurrency_keys.touched + 1;
  -- What was asked for earlier does not come after this.
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

comment on function treadle.set_concurrency(text, integer, text) is
'Set the number of slots of a concurrency key; 0 holds its tasks back.';

-- check_key: refuse a concurrency key or a limit that cannot be.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_key(p_key text, p_max integer, p_least integer)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_key is null then
    perform treadle.refuse(
      'a concurrency limit needs a concurrency key',
      jsonb_build_object('argument', 'concurrency_key'),
      'Give both, for example {"concurrency_key": "repo:web", "concurrency_limit": 2}.'
    );
  elsif octet_length(p_key) not between 1 and 200 then
    perform treadle.refuse(
      format('concurrency_key must have 1 to 200 bytes, not %s', octet_length(p_key)),
      jsonb_build_object('argument', 'concurrency_key'), 'Hash a long key.'
    );
  elsif p_max is null or p_max not between p_least and 1000000 then
    perform treadle.refuse(
      format('the limit of a concurrency key must be %s to 1000000, not %s', p_least, p_max),
      jsonb_build_object('argument', 'concurrency_limit'),
      'To hold all of its tasks back: select treadle.set_concurrency(key, 0).'
    );
  end if;
end;
$$;

-- key_limit: how many tasks of a concurrency key may be under way at once.
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

-- limit_key: ask for another limit of a concurrency key, as who enqueues a task may.
--
-- The latest that commits wins. Nothing is written where the limit is that already, and no row of
-- the key is locked: who gives slots away sets it.
--
-- Concurrency: appends.
-- Raises:      TR001 invalid argument.
create or replace function treadle.limit_key(p_key text, p_max integer)
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
  perform treadle.wake_promoter(treadle.clock());
end;
$$;

grant execute on function treadle.set_concurrency(text, integer, text) to treadle_operator;
