-- limit_key: ask for another limit of a concurrency key, as who enqueues a task may.
--
-- The latest that commits wins. Nothing is written where the limit is that already, and no row of
-- the key is locked: who gives slots away sets it.
--
-- Concurrency: appends.
-- Lock order:  none.
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

comment on function treadle.limit_key(text, integer) is
'Internal: sets how many tasks of a concurrency key may be under way.';

revoke all on function treadle.limit_key(text, integer) from public;
