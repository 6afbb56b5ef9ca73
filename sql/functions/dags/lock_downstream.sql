-- lock_downstream: lock tasks and all that would fall with them, as one ordered set.
--
-- Concurrency: reads, locks and reads again until nothing was added in between.
-- Lock order:  tasks, by id.
-- Raises:      nothing.

create or replace function treadle.lock_downstream(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_found  uuid[] := '{}';
  v_locked uuid[];
begin
  loop
    v_locked := v_found;
    v_found := treadle.downstream_of(p_ids || treadle.dependents_of(p_ids));
    exit when v_found <@ v_locked and v_locked <> '{}';
    perform treadle.lock_tasks(p_ids || v_found);
    exit when v_found = '{}';
  end loop;
  return treadle.downstream_of(p_ids);
end;
$$;

comment on function treadle.lock_downstream(uuid[]) is
'Internal: locks what a cancellation touches; returns those of them that it would cancel.';

revoke all on function treadle.lock_downstream(uuid[]) from public;
