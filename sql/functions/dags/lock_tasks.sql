-- lock_tasks: lock tasks in the one order that all of treadle keeps.
--
-- Concurrency: waits for who holds one of them.
-- Lock order:  tasks, by id.
-- Raises:      nothing; ids that do not exist are left out.

create or replace function treadle.lock_tasks(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  perform tasks.id
  from treadle.tasks
  where tasks.id = any (p_ids)
  order by tasks.id
  for no key update;
end;
$$;

comment on function treadle.lock_tasks(uuid[]) is
'Internal: locks tasks, lowest id first.';

revoke all on function treadle.lock_tasks(uuid[]) from public;
