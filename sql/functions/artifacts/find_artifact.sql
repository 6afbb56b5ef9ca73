-- find_artifact: an artifact that can be used, by its id or by its name in a task.
--
-- Of several with one name the newest counts. What is being stored, or goes, is not found.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing; a row of nulls where there is none.

create or replace function treadle.find_artifact(p_id uuid, p_task uuid, p_name text)
returns treadle.artifacts
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  (
    select artifacts.*
    from treadle.artifacts
    where artifacts.id = p_id and artifacts.status in ('stored', 'linked')
  )
  union all
  (
    select artifacts.*
    from treadle.artifacts
    where
      p_id is null
      and artifacts.task_id = p_task
      and artifacts.name = p_name
      and artifacts.status in ('stored', 'linked')
    order by coalesce(artifacts.stored_at, artifacts.created_at) desc, artifacts.id desc
    limit 1
  )
$$;

comment on function treadle.find_artifact(uuid, uuid, text) is
'Internal: the artifact with this id, else the newest with this name in this task.';

revoke all on function treadle.find_artifact(uuid, uuid, text) from public;
