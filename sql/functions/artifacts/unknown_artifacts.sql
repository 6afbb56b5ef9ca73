-- unknown_artifacts: of these ids, found in the store, those that the database does not have.
--
-- select * from treadle.unknown_artifacts(array[…]);
--
-- A row is there before its file, and goes after it: a file without one is nobody's.
--
-- Concurrency: reads; ask after the store was listed.

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
'Which of these ids belong to no artifact: their files can be deleted.';

grant execute on function treadle.unknown_artifacts(uuid[]) to treadle_worker;
