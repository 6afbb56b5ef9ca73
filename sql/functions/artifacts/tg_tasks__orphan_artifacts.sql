-- tg_tasks__orphan_artifacts: mark the files of deleted tasks for the artifact sweeper.
--
-- Concurrency: running tasks are never deleted, so none of these artifacts is being stored.
-- Lock order:  artifacts.

create or replace function treadle.tg_tasks__orphan_artifacts()
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

comment on function treadle.tg_tasks__orphan_artifacts() is
'Trigger: marks the artifacts of deleted tasks; a sweep deletes their files.';
