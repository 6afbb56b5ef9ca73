-- unknown_artifacts: return the ids of files in the store that have no row in the database.
--
-- select * from treadle.unknown_artifacts(array[…]);
--
-- A row is created before its file and deleted after it, so a file without a row is an orphan.
--
-- Concurrency: reads only; call it after listing the store.

create or replace function treadle.unknown_artifacts(p_ids uuid[])
returns setof uuid
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select given.id
  from unnest(p_ids) as given (id)
  where not exists (select from treadle.artifacts where artifacts.id = given.id)
$$;

comment on function treadle.unknown_artifacts(uuid[]) is
'The given ids that belong to no artifact: their files can be deleted.';

grant execute on function treadle.unknown_artifacts(uuid[]) to treadle_worker;
