-- has_fallout: whether the failure of one of these tasks moves others.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.has_fallout(p_ids uuid[])
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return exists (
    select from treadle.dependencies
    where
      dependencies.depends_on = any (p_ids)
      and dependencies.met_at is null
      and dependencies.on_dead_letter <> 'wait'
  );
end;
$$;

comment on function treadle.has_fallout(uuid[]) is
'Internal: whether somebody goes on or falls when these tasks give up.';

revoke all on function treadle.has_fallout(uuid[]) from public;
