-- prune_keys: forget concurrency keys that no task has and that say nothing of their own.
--
-- A key that is not stored has one slot: so only those with one go. No task that could still run
-- may have it.
--
-- Concurrency: keys that somebody counts are locked, and skipped; a key that is gone is stored
--              again by who counts next.
-- Lock order:  concurrency_keys.
-- Raises:      nothing.

create or replace function treadle.prune_keys(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_keys text[] := array(
    select keys.key
    from treadle.concurrency_keys as keys
    where
      keys.max = 1
      and not exists (
        select from treadle.tasks
        where tasks.concurrency_key = keys.key and tasks.slot is not null
      )
    order by keys.key
    limit p_limit
    for update skip locked
  );
  v_gone integer;
begin
  -- A task may have come since: looked at again, now that the keys are held.
  delete from treadle.concurrency_keys
  where
    concurrency_keys.key = any (v_keys)
    and not exists (
      select from treadle.tasks
      where tasks.concurrency_key = concurrency_keys.key and tasks.slot is not null
    )
    and not exists (
      select from treadle.admissions
      where admissions.kind = 'slot' and admissions.key = concurrency_keys.key
    );
  get diagnostics v_gone = row_count;
  return v_gone;
end;
$$;

comment on function treadle.prune_keys(integer) is
'Internal: deletes concurrency keys that are as good as not there.';

revoke all on function treadle.prune_keys(integer) from public;
