-- save_reply: store the response to a request with an idempotency key, in the same transaction.
--
-- Each call deletes two old responses, so that the table holds little more than one day of them.
--
-- Concurrency: begin_reply has locked the row of the key.
-- Lock order:  replies: its own row is already locked; locked old rows are skipped.
-- Raises:      TR001 invalid argument.

-- prune_replies: delete responses that are too old to be sent again.
--
-- Concurrency: skips locked rows.
-- Lock order:  replies.
create or replace function treadle.prune_replies(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_gone integer;
begin
  delete from treadle.replies
  where replies.ctid = any (
    array(
      select old.ctid
      from treadle.replies as old
      where old.created_at <= treadle.clock() - treadle.reply_age()
      order by old.created_at
      limit p_limit
      for update skip locked
    )
  );
  get diagnostics v_gone = row_count;
  return v_gone;
end;
$$;

create or replace function treadle.save_reply(
  p_key        text,
  p_principal  text,
  p_route      text,
  p_hash       text,
  p_status     integer,
  p_headers    jsonb,
  p_body       bytea
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.ensure_durable();
  if p_status is null or p_body is null then
    perform treadle.raise_error(
      'a response needs a status and a body', jsonb_build_object('argument', 'reply')
    );
  end if;
  -- An existing row has no response yet, or one that is too old; see begin_reply.
  insert into treadle.replies (
    principal, key, route, hash, status, headers, body, created_at
  )
  values (
    p_principal, p_key, p_route, p_hash, p_status, p_headers, p_body, treadle.clock()
  )
  on conflict (principal, key) do update
  set
    route = excluded.route,
    hash = excluded.hash,
    status = excluded.status,
    headers = excluded.headers,
    body = excluded.body,
    created_at = excluded.created_at;
  perform treadle.prune_replies(2);
exception
  when check_violation or not_null_violation then
    perform treadle.raise_error(
      'the response cannot be stored: ' || sqlerrm, jsonb_build_object('argument', 'reply')
    );
end;
$$;

comment on function treadle.save_reply(text, text, text, text, integer, jsonb, bytea) is
'Store the response to a request, so that a repeated request gets it again.';

grant execute on function
treadle.save_reply(text, text, text, text, integer, jsonb, bytea) to
treadle_producer, treadle_worker, treadle_operator;
