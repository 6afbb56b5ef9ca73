-- artifact_folder: return the folder of this database in the artifact store; null until the first
-- file is stored.
--
-- select treadle.artifact_folder();

create or replace function treadle.artifact_folder()
returns text
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select artifact_store.id::text from treadle.artifact_store
$$;

comment on function treadle.artifact_folder() is
'The first part of every storage key, so that several databases can share one store.';

grant execute on function treadle.artifact_folder() to treadle_worker;
