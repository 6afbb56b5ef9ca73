-- list_artifacts: list the files of all attempts of a task, oldest first.
--
-- select * from treadle.list_artifacts(task);

create or replace function treadle.list_artifacts(p_task uuid)
returns setof jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select treadle.artifact_value(artifacts) || jsonb_build_object('attempt', artifacts.attempt)
  from treadle.artifacts
  where artifacts.task_id = p_task and artifacts.status in ('stored', 'linked')
  order by coalesce(artifacts.stored_at, artifacts.created_at), artifacts.id
$$;

comment on function treadle.list_artifacts(uuid) is
'The usable artifacts of a task, with the attempt that made each.';

grant execute on function treadle.list_artifacts(uuid) to treadle_worker, treadle_producer;
