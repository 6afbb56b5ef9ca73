-- lock_fallout: before attempts fail, lock what falls should that be their end.
--
-- Nothing to do for tasks whose dependents wait for a person, which is the default.
--
-- Concurrency: see lock_downstream.
-- Lock order:  tasks, by id.
-- Raises:      nothing.

create or replace function treadle.lock_fallout(p_ids uuid[], p_cancels boolean)
returns void
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  if p_cancels or exists (
    select from treadle.dependencies
    where
      dependencies.depends_on = any (p_ids)
      and dependencies.met_at is null
      and dependencies.on_dead_letter <> 'wait'
  ) then
    perform treadle.lock_downstream(p_ids);
  end if;
end;
$$;

comment on function treadle.lock_fallout(uuid[], boolean) is
'Internal: keeps the order of locks where a failure may take other tasks along.';

revoke all on function treadle.lock_fallout(uuid[], boolean) from public;
