-- hold_dispatch: lock a task and its open submission for whoever follows it.
--
-- Time is not asked: a lease that ran out and that nobody took over still holds.
--
-- Concurrency: the fence is checked on the locked row; empty when somebody else has it.
-- Lock order:  tasks, dispatches.
-- Raises:      nothing.

create or replace function treadle.hold_dispatch(p_task uuid, p_token uuid, p_holder uuid)
returns treadle.dispatches
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found treadle.dispatches;
begin
  perform treadle.lock_tasks(array[p_task]);
  select dispatches.* into v_found
  from treadle.dispatches
  where
    dispatches.task_id = p_task
    and dispatches.claim_token = p_token
    and dispatches.holder = p_holder
  for no key update;
  return v_found;
end;
$$;

comment on function treadle.hold_dispatch(uuid, uuid, uuid) is
'Internal: the submission that a dispatcher follows, locked; empty when it does not any more.';

revoke all on function treadle.hold_dispatch(uuid, uuid, uuid) from public;
