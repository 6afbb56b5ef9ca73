-- begin_reply: return the stored response for an idempotency key; if there is none, lock the key.
--
-- select * from treadle.begin_reply('key', 'me', 'POST /v1/tasks', 'hash');
--
-- No row: handle the request and call save_reply, both in this transaction. A row: send that
-- response and do nothing else; if it has a problem, the request is refused.
--
-- Concurrency: the row of the key is locked until the transaction ends; a second request with the
-- key is rejected meanwhile. A stored response is read without a lock.
-- Lock order:  replies, before everything else in the request; waits at most 100 ms.
-- Raises:      TR001 invalid argument. The problems are TR112, another request had the key, and
-- TR113, a request with the key is in progress.

-- reply_age: return how long a response is kept.
create or replace function treadle.reply_age()
returns interval
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select interval '24 hours'
$$;

-- stored_reply: return the response that a request with a key got, unless it is too old.
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

-- lock_reply: lock the row of a key, and create it if there is none; false if another session has
-- it.
--
-- The row has no status until save_reply stores the response. An advisory lock is not used, because
-- any login could take it and block the key.
--
-- Concurrency: skips a row that another session has locked, and waits at most 100 ms for a session
-- that is inserting the same row. A shorter time would not work: lock_timeout also counts the wait
-- for other sessions to extend the table, which does not concern the key.
-- Lock order:  replies.
create or replace function treadle.lock_reply(
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
returns table (status integer, headers jsonb, body bytea, problem jsonb)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_reply treadle.replies;
begin
  if not coalesce(char_length(p_key) between 1 and 200, false) then
    perform treadle.raise_error(
      'Idempotency-Key must have 1 to 200 characters', jsonb_build_object('argument', 'key'),
      'Use a UUID, for example.'
    );
  end if;
  select stored.* into v_reply from treadle.stored_reply(p_principal, p_key) as stored;
  if not found then
    if not treadle.lock_reply(p_key, p_principal, p_route, p_hash) then
      problem := treadle.problem(
        'TR113', 'a request with this Idempotency-Key is in progress', '{"retry_after_s": 1}',
        'Wait a moment, then send the request again.'
      );
      return next;
      return;
    end if;
    -- Read again under the lock: the response may have been stored in between.
    select stored.* into v_reply from treadle.stored_reply(p_principal, p_key) as stored;
  end if;
  if found and (v_reply.route, v_reply.hash) is distinct from (p_route, p_hash) then
    problem := treadle.problem(
      'TR112', 'this Idempotency-Key was used with a different request',
      jsonb_build_object('route', v_reply.route, 'answered_at', v_reply.created_at)::text,
      'Use a new key for each request; reuse a key only to repeat the same request.'
    );
    return next;
    return;
  end if;
  return query select v_reply.status, v_reply.headers, v_reply.body, null::jsonb
  where v_reply.status is not null;
end;
$$;

comment on function treadle.begin_reply(text, text, text, text) is
'Lock the idempotency key of a request; returns the stored response if there is one.';

grant execute on function treadle.begin_reply(text, text, text, text) to
treadle_producer, treadle_worker, treadle_operator;
