-- make_key: insert the row of a concurrency key; false if another session has inserted it.
--
-- The uncommitted row is the lock. An advisory lock would not do: any login could hold it and stop
-- the key.
--
-- Concurrency: waits at most 1 ms, the shortest lock_timeout, for a session that is inserting the
--              same key. The exception block costs a subtransaction, once for each new key.
-- Lock order:  concurrency_keys.
-- Raises:      nothing.

create or replace function treadle.make_key(p_key text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '1ms'
as $$
begin
  insert into treadle.concurrency_keys (key) values (p_key) on conflict (key) do nothing;
  return found;
exception
  when lock_not_available then
    return false;
end;
$$;

comment on function treadle.make_key(text) is
'Internal: inserts a concurrency key, unless another session is inserting it.';

revoke all on function treadle.make_key(text) from public;
