-- begin_reply: whether a request with a key was answered before, and if not, hold the key.
--
-- select * from treadle.begin_reply('key', 'me', 'POST /v1/tasks', 'hash');
--
-- No row: do it, then keep_reply, both in this transaction. A row: send that, and do nothing.
--
-- Concurrency: the row of the key is locked until the transaction ends; a second request with the
--              key is refused meanwhile. An answer that is stored is read without a lock.
-- Lock order:  replies, before everything that the request does; waited for at most 100 ms.
-- Raises:      TR001 invalid argument, TR112 another request had the key, TR113 in flight.

-- reply_age: how long the answer to a request with a key is kept.
create or replace function treadle.reply_age()
returns interval
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select interval '24 hours'
$$;

-- stored_reply: the answer that a request with a key got, unless it is too old to be sent again.
create or replace function treadle.stored_reply(p_principal text, p_key text)
returns setof treadle.replies
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select replies.*
  from treadle.replies
  where
    replies.principal = p_principal
    and replies.key = p_key
    and replies.status is not null
    and replies.created_at > treadle.clock() - treadle.reply_age()
$$;

-- hold_reply: lock the row of a request with a key, which is made where there is none; false if
-- another session has it.
--
-- The row has no status until keep_reply stores the answer. An advisory lock would not do: any
-- login could hold it and stop the key.
--
-- Concurrency: skips a row that another session has locked, and waits at most 100 ms for a session
--              that is inserting the same row. Less would not do: lock_timeout also counts the wait
--              for others to extend the table, which says nothing about the key.
-- Lock order:  replies.
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
set lock_timeout = '100ms'
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

create or replace function treadle.begin_reply(
  p_key        text,
  p_principal  text,
  p_route      text,
  p_hash       text
)
returns table (status integer, headers jsonb, body bytea)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_reply treadle.replies;
begin
  if not coalesce(octet_length(p_key) between 1 and 200, false) then
    perform treadle.refuse(
      'Idempotency-Key must have 1 to 200 bytes', jsonb_build_object('argument', 'key'),
      'A UUID is good.'
    );
  end if;
  select stored.* into v_reply from treadle.stored_reply(p_principal, p_key) as stored;
  if not found then
    if not treadle.hold_reply(p_key, p_principal, p_route, p_hash) then
      perform treadle.refuse(
        'a request with this Idempotency-Key is being answered now',
        jsonb_build_object('retry_after_s', 1),
        'Wait a moment, then send it again.',
        'TR113'
      );
    end if;
    -- Again, under the lock: the answer may have been stored in between.
    select stored.* into v_reply from treadle.stored_reply(p_principal, p_key) as stored;
  end if;
  if found and (v_reply.route, v_reply.hash) is distinct from (p_route, p_hash) then
    perform treadle.refuse(
      'this Idempotency-Key was sent with another request',
      jsonb_build_object('route', v_reply.route, 'answered_at', v_reply.created_at),
      'Use a new key for each request, and the same one only to repeat it as it was.',
      'TR112'
    );
  end if;
  return query select v_reply.status, v_reply.headers, v_reply.body
  where v_reply.status is not null;
end;
$$;

comment on function treadle.begin_reply(text, text, text, text) is
'Hold the key of a request; the answer when it had one before.';

grant execute on function treadle.begin_reply(text, text, text, text) to
treadle_producer, treadle_worker, treadle_operator;
