-- remove_deleted_artifacts: delete the rows of artifacts whose files have been deleted.
--
-- select treadle.remove_deleted_artifacts(array[…]);
--
-- Concurrency: deletes only rows with the status doomed; another sweeper may have deleted some
-- already.
-- Lock order:  artifacts, by id.

create or replace function treadle.remove_deleted_artifacts(p_ids uuid[])
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_count integer;
begin
  perform artifacts.id
  from treadle.artifacts
  where artifacts.id = any (p_ids) and artifacts.status = 'doomed'
  order by artifacts.id
  for update;
  delete from treadle.artifacts
  where artifacts.id = any (p_ids) and artifacts.status = 'doomed';
  get diagnostics v_count = row_count;
  return v_count;
end;
$$;

comment on function treadle.remove_deleted_artifacts(uuid[]) is
'Delete the rows of artifacts whose files have been deleted; returns how many.';

grant execute on function treadle.remove_deleted_artifacts(uuid[]) to treadle_worker;
