-- keep_reply: store the answer to a request with a key, in the transaction of what it did.
--
-- Two old ones go for each that comes, so that there are never many more than those of a day.
--
-- Concurrency: begin_reply has locked the row of the key.
-- Lock order:  replies: its own row is locked already, old ones are skipped where they are locked.
-- Raises:      TR001 invalid argument.

-- prune_replies: delete answers that are too old to be sent again.
--
-- Concurrency: rows locked by others are skipped.
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

create or replace function treadle.keep_reply(
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
  perform treadle.keep_durable();
  if p_status is null or p_body is null then
    perform treadle.refuse(
      'an answer needs a status and a body', jsonb_build_object('argument', 'reply')
    );
  end if;
  -- A row that is there already has no answer yet, or one that is too old: see begin_reply.
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
    perform treadle.refuse(
      'this answer cannot be kept: ' || sqlerrm, jsonb_build_object('argument', 'reply')
    );
end;
$$;

comment on function treadle.keep_reply(text, text, text, text, integer, jsonb, bytea) is
'Store the answer to a request, so that a repeat gets it again.';

grant execute on function
treadle.keep_reply(text, text, text, text, integer, jsonb, bytea) to
treadle_producer, treadle_worker, treadle_operator;
