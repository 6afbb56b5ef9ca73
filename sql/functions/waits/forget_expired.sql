-- forget_expired: let a task that gets another round ask again what nobody answered in time.
--
-- Concurrency: the caller holds the task.
-- Lock order:  waits, steps; after tasks.
-- Raises:      nothing.

create or replace function treadle.forget_expired(p_task uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  update treadle.waits
  set status = 'cancelled'
  where waits.task_id = p_task and waits.status = 'expired';

  delete from treadle.steps
  where
    steps.task_id = p_task and steps.kind = 'wait' and steps.output ->> 'status' = 'expired';
$$;

comment on function treadle.forget_expired(uuid) is
'Internal: drops the answers that never came.';

revoke all on function treadle.forget_expired(uuid) from public;
