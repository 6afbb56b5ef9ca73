-- read_artifact: find the file of an artifact by artifact:<id>, by id, or by its name in a task.
--
-- select * from treadle.read_artifact('report.pdf', task);
--
-- Raises:      TR214 artifact not found.

-- artifact_value: return an artifact as JSON, as tasks receive it.
create or replace function treadle.artifact_value(p_row treadle.artifacts)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'id', p_row.id, 'name', p_row.name, 'uri', p_row.uri,
    'media_type', p_row.media_type, 'bytes', p_row.bytes, 'sha256', p_row.sha256
  )
$$;

-- find_artifact: find a usable artifact by its id, or by its name in a task.
--
-- If several have the same name, the newest is returned. Artifacts that are being stored or deleted
-- are not found. Returns a row of nulls if there is none.
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

-- raise_artifact_not_found: raise the error for an artifact that does not exist.
--
-- Raises:      TR214 artifact not found.
create or replace function treadle.raise_artifact_not_found(p_reference text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.raise_error(
    format('there is no artifact %s', left(p_reference, 200)),
    jsonb_build_object('artifact', left(p_reference, 200)),
    'Pass the name of an artifact of this task, or any id. To list: treadle artifacts list', 'TR214'
  );
end;
$$;

create or replace function treadle.read_artifact(
  p_reference  text,
  p_task       uuid default null,
  out key text,
  out value jsonb
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_id  constant text := '^(?:artifact:)?([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$';
  v_row treadle.artifacts := treadle.find_artifact(
    (regexp_match(p_reference, c_id))[1]::uuid, p_task, p_reference
  );
begin
  if v_row.id is null then
    perform treadle.raise_artifact_not_found(p_reference);
  end if;
  key := v_row.key;
  value := treadle.artifact_value(v_row);
end;
$$;

comment on function treadle.read_artifact(text, uuid) is
'The location, size and hash of an artifact; key is null if the file is outside the store.';

grant execute on function treadle.read_artifact(text, uuid) to treadle_worker, treadle_producer;
