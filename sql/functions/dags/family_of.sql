-- family_of: the tasks that a cancellation of these touches.
--
-- They themselves, also when they have ended; what falls with them; and who waits for one of those,
-- be it over an optional edge.
--
-- Concurrency: reads; what is added meanwhile is seen by the next look.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.family_of(p_ids uuid[])
returns uuid[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_falling uuid[] := treadle.downstream_of(
    p_ids || array(
      select dependencies.task_id
      from treadle.dependencies
      where
        dependencies.depends_on = any (p_ids)
        and dependencies.met_at is null
        and not dependencies.optional
    )
  );
begin
  return p_ids || v_falling || treadle.dependents_of(p_ids || v_falling);
end;
$$;

comment on function treadle.family_of(uuid[]) is
'Internal: tasks, what falls with them, and who waits for those.';

revoke all on function treadle.family_of(uuid[]) from public;
