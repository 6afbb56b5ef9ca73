-- schema_version: return the newest migration and the checksum of the functions in this database.

create or replace function treadle.schema_version(
  out version integer,
  out code_checksum text
)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    (select max(migrations.version) from treadle.migrations),
    (select code.checksum from treadle.code)
$$;

comment on function treadle.schema_version() is
'The newest applied migration and the checksum of the installed functions and views.';

grant execute on function treadle.schema_version() to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
