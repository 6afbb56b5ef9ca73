-- hold_key: lock the row of a concurrency key, which is made on first use; false if it is in use.
--
-- Producers write no such row, so that a long transaction of one holds up nobody.
--
-- Concurrency: skips a row that another session has locked; make_key bounds the wait for a row that
--              another session is inserting.
-- Lock order:  concurrency_keys.
-- Raises:      nothing.

create or replace function treadle.hold_key(p_key text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform concurrency_keys.key
  from treadle.concurrency_keys
  where concurrency_keys.key = p_key
  for update skip locked;
  if found then
    return true;
  end if;
  if exists (select from treadle.concurrency_keys where concurrency_keys.key = p_key) then
    return false;
  end if;
  return treadle.make_key(p_key);
end;
$$;

comment on function treadle.hold_key(text) is
'Internal: locks a concurrency key, unless another session has it.';

revoke all on function treadle.hold_key(text) from public;
