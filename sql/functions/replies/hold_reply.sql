-- hold_reply: lock the row of a request with a key, which is made where there is none; false if
-- another session has it.
--
-- The row has no status until keep_reply stores the answer. An advisory lock would not do: any
-- login could hold it and stop the key.
--
-- Concurrency: skips a row that another session has locked, and waits at most 1 ms, the shortest
--              lock_timeout, for a session that is inserting the same row.
-- Lock order:  replies.
-- Raises:      nothing.

create or replace function treadle.hold_reply(
  p_key        text,
  p_principal  text,
  p_route      text,
  p_hash       text
)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '1ms'
as $$
begin
  perform replies.key
  from treadle.replies
  where replies.principal = p_principal and replies.key = p_key
  for update skip locked;
  if found then
    return true;
  end if;
  if exists (
    select from treadle.replies where replies.principal = p_principal and replies.key = p_key
  ) then
    return false;
  end if;
  insert into treadle.replies (principal, key, route, hash, created_at)
  values (p_principal, p_key, p_route, p_hash, treadle.clock())
  on conflict (principal, key) do nothing;
  return found;
exception
  when lock_not_available then
    return false;
end;
$$;

comment on function treadle.hold_reply(text, text, text, text) is
'Internal: locks the key of a request, unless another session has it.';

revoke all on function treadle.hold_reply(text, text, text, text) from public;
