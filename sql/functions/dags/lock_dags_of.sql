-- lock_dags_of: lock the DAGs of some tasks, in the one order that all of treadle keeps.
--
-- Concurrency: waits for who holds one of them.
-- Lock order:  dags, by id (after tasks).
-- Raises:      nothing.

create or replace function treadle.lock_dags_of(p_tasks uuid[], p_dag uuid default null)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  perform dags.id
  from treadle.dags
  where dags.id = any (
    -- Nulls among them do no harm, and a condition against them would invite the wrong index.
    p_dag || array(select tasks.dag_id from treadle.tasks where tasks.id = any (p_tasks))
  )
  order by dags.id
  for no key update;
end;
$$;

comment on function treadle.lock_dags_of(uuid[], uuid) is
'Internal: locks the DAGs of tasks, and one more, lowest id first.';

revoke all on function treadle.lock_dags_of(uuid[], uuid) from public;
