-- artifact_folder: the folder of this database in a store; null while it has stored nothing.
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
'The first part of every key: several databases can share a store.';

grant execute on function treadle.artifact_folder() to treadle_worker;
