-- stored_reply: the answer that a request with a key got, unless it is too old to be sent again.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.stored_reply(text, text) is
'Internal: the stored answer for the key of a caller.';

revoke all on function treadle.stored_reply(text, text) from public;
