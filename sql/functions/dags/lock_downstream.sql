-- lock_downstream: lock all that a cancellation of tasks touches: tasks, then their DAGs.
--
-- Returns those that it would cancel, the tasks themselves included.
--
-- Concurrency: see lock_family.
-- Lock order:  tasks, dags, each by id.
-- Raises:      nothing.

create or replace function treadle.lock_downstream(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.lock_dags_of(treadle.lock_family(p_ids));
  return treadle.downstream_of(p_ids);
end;
$$;

comment on function treadle.lock_downstream(uuid[]) is
'Internal: locks what a cancellation touches; returns those of them that it would cancel.';

revoke all on function treadle.lock_downstream(uuid[]) from public;
