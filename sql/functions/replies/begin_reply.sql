-- begin_reply: whether a request with a key was answered before, and if not, hold the key.
--
-- select * from treadle.begin_reply('key', 'me', 'POST /v1/tasks', 'hash');
--
-- No row: do it, then keep_reply, both in this transaction. A row: send that, and do nothing.
--
-- Concurrency: the key is held until the transaction ends; who comes meanwhile is refused.
-- Lock order:  none that is waited for.
-- Raises:      TR001 invalid argument, TR112 another request had the key, TR113 in flight.

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
set search_path = ''
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
  if not pg_try_advisory_xact_lock(
    hashtextextended(format('treadle.replies %L %L', p_principal, p_key), 0)
  ) then
    perform treadle.refuse(
      'a request with this Idempotency-Key is being answered now',
      jsonb_build_object('retry_after_s', 1),
      'Wait a moment, then send it again.',
      'TR113'
    );
  end if;

  select replies.*
  into v_reply
  from treadle.replies
  where
    replies.principal = p_principal
    and replies.key = p_key
    and replies.created_at > treadle.clock() - treadle.reply_age();
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

revoke all on function treadle.begin_reply(text, text, text, text) from public;
grant execute on function treadle.begin_reply(text, text, text, text) to
treadle_producer, treadle_worker, treadle_operator;
