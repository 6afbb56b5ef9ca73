-- record_artifact: record a file of a running task that is stored elsewhere, so that later tasks
-- can use it.
--
-- select treadle.record_artifact(id, token, 'report.pdf', 's3://reports/7.pdf');
--
-- Recording the same file of the same task again returns the same artifact.
--
-- Concurrency: see lock_claim.
-- Lock order:  tasks, artifacts.
-- Raises:      TR001 invalid argument, TR101 claim lost.

create or replace function treadle.record_artifact(
  p_id          uuid,
  p_token       uuid,
  p_name        text,
  p_uri         text,
  p_media_type  text default null,
  p_bytes       bigint default null,
  p_sha256      text default null
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_task  treadle.tasks;
  v_wrong text := case
    when octet_length(p_name) between 1 and 1000 is not true then 'name must have 1 to 1000 bytes'
    when octet_length(p_uri) between 1 and 4000 is not true then 'uri must have 1 to 4000 bytes'
    when octet_length(p_media_type) > 200 then 'media_type must have at most 200 bytes'
    when p_bytes < 0 then 'bytes must be 0 or more'
    when p_sha256 !~ '^[0-9a-fA-F]{64}$' then 'sha256 must be 64 hex digits'
  end;
  v_id    uuid;
begin
  if v_wrong is not null then
    perform treadle.raise_error(
      'artifact: ' || v_wrong, jsonb_build_object('argument', split_part(v_wrong, ' ', 1)),
      'Pass a name, and a uri where the file is: s3://bucket/report.pdf'
    );
  end if;

  v_task := treadle.lock_claim(p_id, p_token);
  select artifacts.id
  into v_id
  from treadle.artifacts
  where
    artifacts.task_id = v_task.id
    and artifacts.status = 'linked'
    and artifacts.name = p_name
    and artifacts.uri = p_uri
    and artifacts.media_type is not distinct from p_media_type
    and artifacts.bytes is not distinct from p_bytes
    and artifacts.sha256 is not distinct from lower(p_sha256)
  limit 1;
  if not found then
    insert into treadle.artifacts (
      task_id, claim_token, name, uri, media_type, bytes, sha256, attempt, agent_id, created_at
    )
    values (
      v_task.id, p_token, p_name, p_uri, p_media_type, p_bytes, lower(p_sha256), v_task.attempt,
      v_task.agent_id, treadle.clock()
    )
    returning artifacts.id into v_id;
  end if;
  return v_id;
end;
$$;

comment on function treadle.record_artifact(uuid, uuid, text, text, text, bigint, text) is
'Record a file of a claimed task that is stored elsewhere; returns the id for artifact:<id>.';

grant execute on function treadle.record_artifact(uuid, uuid, text, text, text, bigint, text)
to treadle_worker;
