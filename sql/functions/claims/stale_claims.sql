-- stale_claims: lock claims that have run out, and say why.
--
-- The ids come first, from the index of live claims; an `order by` with a limit there could make
-- the planner walk the whole table in id order instead.
--
-- Concurrency: rows locked by others are skipped; the test is repeated on the locked row.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.stale_claims(
  p_now    timestamptz,
  p_limit  integer,
  p_skip   uuid[]
)
returns table (ctid tid, id uuid, reason text)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_ids uuid[] := array(
    select tasks.id
    from treadle.tasks
    where
      tasks.status in ('claimed', 'running', 'validating')
      and treadle.stale_reason(tasks, p_now) is not null
      and tasks.id <> all (p_skip)
  );
begin
  return query
  select tasks.ctid, tasks.id, treadle.stale_reason(tasks, p_now)
  from (
    select given.id from unnest(v_ids) as given (id) order by given.id limit p_limit
  ) as stale
  inner join treadle.tasks on stale.id = tasks.id
  where treadle.stale_reason(tasks, p_now) is not null
  for update of tasks skip locked;
end;
$$;

comment on function treadle.stale_claims(timestamptz, integer, uuid[]) is
'Internal: locks up to p_limit claims that ran out.';

revoke all on function treadle.stale_claims(timestamptz, integer, uuid[]) from public;
