-- reserve_artifact: reserve a storage key for a file of a claimed task, before the file is written.
--
-- select * from treadle.reserve_artifact(id, token, gen_random_uuid(), 'a.pdf', 's3://files');
--
-- The artifact stays invisible until store_artifact. The caller chooses the id, so a repeat is
-- safe.
--
-- Concurrency: see lock_claim. The row is committed before the file is written: no file exists
-- without a row.
-- Lock order:  tasks, artifact_store, artifacts.
-- Raises:      TR001 invalid argument, TR101 claim lost.

-- check_artifact: check the arguments of a reservation.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_artifact(
  p_artifact    uuid,
  p_name        text,
  p_url         text,
  p_media_type  text
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong text := case
    when p_artifact is null then 'artifact must be an id'
    when octet_length(p_name) between 1 and 1000 is not true then 'name must have 1 to 1000 bytes'
    when octet_length(p_url) between 1 and 3000 is not true then 'url must have 1 to 3000 bytes'
    when octet_length(p_media_type) not between 1 and 200 then 'media_type must have 1 to 200 bytes'
  end;
begin
  if v_wrong is not null then
    perform treadle.raise_error(
      'artifact: ' || v_wrong, jsonb_build_object('argument', split_part(v_wrong, ' ', 1)),
      'Give the file a short name: report.pdf'
    );
  end if;
end;
$$;

create or replace function treadle.reserve_artifact(
  p_id          uuid,
  p_token       uuid,
  p_artifact    uuid,
  p_name        text,
  p_url         text,
  p_media_type  text default null,
  out key text,
  out uri text
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_task treadle.tasks;
begin
  perform treadle.check_artifact(p_artifact, p_name, p_url, p_media_type);
  v_task := treadle.lock_claim(p_id, p_token);
  insert into treadle.artifact_store (only_one) values (true) on conflict do nothing;
  insert into treadle.artifacts (
    id, task_id, claim_token, name, uri, key, media_type, status, attempt, agent_id, created_at
  )
  select
    p_artifact, v_task.id, p_token, p_name, rtrim(p_url, '/') || '/' || place.key, place.key,
    p_media_type, 'storing', v_task.attempt, v_task.agent_id, treadle.clock()
  from (
    select format('%s/%s/%s', artifact_store.id, v_task.id, p_artifact) as key
    from treadle.artifact_store
  ) as place
  on conflict (id) do nothing;

  select artifacts.key, artifacts.uri
  into key, uri
  from treadle.artifacts
  where
    artifacts.id = p_artifact
    and artifacts.task_id = v_task.id
    and artifacts.claim_token = p_token
    and artifacts.name = p_name
    and artifacts.status in ('storing', 'stored');
  if not found then
    perform treadle.raise_error(
      format('artifact id %s is already used for another file', p_artifact),
      jsonb_build_object('argument', 'artifact'), 'Make a new id for each file.'
    );
  end if;
end;
$$;

comment on function treadle.reserve_artifact(uuid, uuid, uuid, text, text, text) is
'Reserve a storage key for a file of a claimed task, before the file is written.';

grant execute on function treadle.reserve_artifact(uuid, uuid, uuid, text, text, text)
to treadle_worker;
