-- tg_tasks__doom: after tasks are deleted, their files are for the sweeper.
--
-- Concurrency: no running task is deleted, so none of their artifacts is being stored.
-- Lock order:  artifacts.

create or replace function treadle.tg_tasks__doom()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_ids uuid[] := array(
    select artifacts.id
    from treadle.artifacts
    where artifacts.task_id = any (array(select removed.id from removed))
  );
begin
  if v_ids <> '{}' then
    delete from treadle.artifacts
    where artifacts.id = any (v_ids) and artifacts.status = 'linked';
    update treadle.artifacts
    set status = 'doomed'
    where artifacts.id = any (v_ids) and artifacts.status in ('storing', 'stored');
  end if;
  return null;
end;
$$;

comment on function treadle.tg_tasks__doom() is
'Trigger: dooms the artifacts of deleted tasks; their files are deleted by a sweep.';
