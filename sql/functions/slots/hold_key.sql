-- hold_key: lock the row of a concurrency key, which is made on first use; false if it is in use.
--
-- Producers write no such row, so that a long transaction of one holds up nobody.
--
-- Concurrency: never waits: not for the row, and not for who is making it.
-- Lock order:  concurrency_keys.
-- Raises:      nothing.

create or replace function treadle.hold_key(p_key text)
returns boolean
language plpgsql
volatile
set search_path = ''
as $$
begin
  perform concurrency_keys.key
  from treadle.concurrency_keys
  where concurrency_keys.key = p_key
  for update skip locked;
  if found then
    return true;
  end if;
  if exists (select from treadle.concurrency_keys where concurrency_keys.key = p_key)
    or not pg_try_advisory_xact_lock(hashtextextended('treadle.concurrency_keys ' || p_key, 0)) then
    return false;
  end if;
  insert into treadle.concurrency_keys (key) values (p_key) on conflict (key) do nothing;
  return found;
end;
$$;

comment on function treadle.hold_key(text) is
'Internal: locks a concurrency key, unless another session has it.';

revoke all on function treadle.hold_key(text) from public;
