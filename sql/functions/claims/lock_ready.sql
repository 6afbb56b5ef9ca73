-- lock_ready: lock tasks that are still ready, in the order given, until there are enough.
--
-- Concurrency: rows locked by others are skipped, never waited for.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.lock_ready(p_rows tid[], p_limit integer)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  return array(
    select held.ctid
    from unnest(p_rows) as given (row)
    -- One after the other: the limit ends it, and no row is locked in vain.
    cross join lateral (
      select tasks.ctid
      from treadle.tasks
      where tasks.ctid = given.row and tasks.status = 'ready'
      for update skip locked
    ) as held
    limit p_limit
  );
end;
$$;

comment on function treadle.lock_ready(tid[], integer) is
'Internal: locks up to p_limit of some ready tasks.';

revoke all on function treadle.lock_ready(tid[], integer) from public;
