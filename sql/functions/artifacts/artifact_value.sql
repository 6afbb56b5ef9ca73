-- artifact_value: an artifact as the task that made it and those after it are given it.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.artifact_value(treadle.artifacts) is
'Internal: id, name, uri, media type, size and hash of an artifact.';

revoke all on function treadle.artifact_value(treadle.artifacts) from public;
