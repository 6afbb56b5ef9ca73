-- hold_prunable: lock tasks that are to go, and their DAGs; returns those that it has.
--
-- Concurrency: what others hold is left out, not waited for. The time is judged again on the
--              locked row: a task that was retried meanwhile is not among them.
-- Lock order:  tasks, dags.
-- Raises:      nothing.

create or replace function treadle.hold_prunable(p_ids uuid[])
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_ids  uuid[] := array(
    select prunable_tasks.id
    from treadle.prunable_tasks
    where prunable_tasks.id = any (p_ids)
    for update skip locked
  );
  v_dags uuid[] := array(
    select distinct tasks.dag_id
    from treadle.tasks
    where tasks.id = any (v_ids) and tasks.dag_id is not null
  );
  v_held uuid[];
begin
  if v_dags = '{}' then
    return v_ids;
  end if;
  v_held := array(
    select dags.id from treadle.dags where dags.id = any (v_dags) for update skip locked
  );
  return array(
    select tasks.id
    from treadle.tasks
    where
      tasks.id = any (v_ids)
      and (
        tasks.dag_id is null
        or tasks.dag_id = any (v_held)
        or not exists (select from treadle.dags where dags.id = tasks.dag_id)
      )
  );
end;
$$;

comment on function treadle.hold_prunable(uuid[]) is
'Internal: locks finished tasks that may go, as far as nobody else has them.';

revoke all on function treadle.hold_prunable(uuid[]) from public;
