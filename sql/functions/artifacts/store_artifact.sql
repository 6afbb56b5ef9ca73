-- store_artifact: make a reserved artifact visible once its file is stored completely.
--
-- select treadle.store_artifact(id, token, artifact, 1024, '9f86d0…');
--
-- Concurrency: see lock_claim. A worker that has lost its claim cannot make its file visible.
-- Lock order:  tasks, artifacts.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR214 artifact not found.

create or replace function treadle.store_artifact(
  p_id        uuid,
  p_token     uuid,
  p_artifact  uuid,
  p_bytes     bigint,
  p_sha256    text
)
returns jsonb
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_row treadle.artifacts;
begin
  if p_bytes >= 0 is not true or p_sha256 ~ '^[0-9a-f]{64}$' is not true then
    perform treadle.raise_error(
      'artifact: bytes must be 0 or more and sha256 64 hex digits in lower case',
      '{"argument": "sha256"}', 'Pass the size and hash computed while writing the file.'
    );
  end if;

  perform treadle.lock_claim(p_id, p_token);
  update treadle.artifacts
  set status = 'stored', bytes = p_bytes, sha256 = p_sha256, stored_at = treadle.clock()
  where
    artifacts.id = p_artifact
    and artifacts.task_id = p_id
    and artifacts.claim_token = p_token
    and artifacts.status = 'storing';

  select artifacts.*
  into v_row
  from treadle.artifacts
  where
    artifacts.id = p_artifact
    and artifacts.task_id = p_id
    and artifacts.claim_token = p_token
    and artifacts.status = 'stored';
  if not found then
    perform treadle.raise_artifact_not_found(p_artifact::text);
  elsif v_row.bytes <> p_bytes or v_row.sha256 <> p_sha256 then
    perform treadle.raise_error(
      format('artifact %s is already stored with different content', p_artifact),
      jsonb_build_object('argument', 'artifact'), 'Make a new id for each file.'
    );
  end if;
  return treadle.artifact_value(v_row);
end;
$$;

comment on function treadle.store_artifact(uuid, uuid, uuid, bigint, text) is
'Make a reserved artifact visible, with the size and the hash of its file.';

grant execute on function treadle.store_artifact(uuid, uuid, uuid, bigint, text)
to treadle_worker;
