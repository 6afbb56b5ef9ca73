-- forget_artifacts: remove the rows of doomed artifacts once their files are deleted.
--
-- select treadle.forget_artifacts(array[…]);
--
-- Concurrency: only doomed ones go; another sweeper may have been first.
-- Lock order:  artifacts, by id.

create or replace function treadle.forget_artifacts(p_ids uuid[])
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

comment on function treadle.forget_artifacts(uuid[]) is
'Remove doomed artifacts whose files are deleted; returns how many there were.';

grant execute on function treadle.forget_artifacts(uuid[]) to treadle_worker;
