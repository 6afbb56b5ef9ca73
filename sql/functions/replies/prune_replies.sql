-- prune_replies: delete answers that are too old to be sent again.
--
-- Concurrency: rows locked by others are skipped.
-- Lock order:  replies.
-- Raises:      nothing.

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

comment on function treadle.prune_replies(integer) is
'Internal: deletes answers that are older than a day.';

revoke all on function treadle.prune_replies(integer) from public;
