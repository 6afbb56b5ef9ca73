-- close_action: the result of a task is dealt with: the task is done.
--
-- Concurrency: the caller holds the task and its action.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.close_action(p_id uuid, p_token uuid)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.tasks
  set consumed_at = treadle.clock(), consumed_token = p_token
  where tasks.id = p_id and tasks.consumed_token is null;
  delete from treadle.harness_nudges where harness_nudges.task_id = p_id;
end;
$$;

comment on function treadle.close_action(uuid, uuid) is
'Internal: marks a task of the harness done.';

revoke all on function treadle.close_action(uuid, uuid) from public;
