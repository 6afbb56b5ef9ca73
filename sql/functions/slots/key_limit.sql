-- key_limit: how many tasks of a concurrency key may be under way at once.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.key_limit(text) is
'Internal: the slots of a concurrency key; one where nobody said.';

revoke all on function treadle.key_limit(text) from public;
