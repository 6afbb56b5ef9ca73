-- cancel_artifact: delete the reservation of a file that was not stored.
--
-- select treadle.cancel_artifact(id, token, artifact);
--
-- Concurrency: a row that was stored or swept in the meantime stays as it is.
-- Lock order:  artifacts.

create or replace function treadle.cancel_artifact(p_id uuid, p_token uuid, p_artifact uuid)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  delete from treadle.artifacts
  where
    artifacts.id = p_artifact
    and artifacts.task_id = p_id
    and artifacts.claim_token = p_token
    and artifacts.status = 'storing';
  return found;
end;
$$;

comment on function treadle.cancel_artifact(uuid, uuid, uuid) is
'Delete a reserved artifact whose file does not exist; returns whether there was one.';

grant execute on function treadle.cancel_artifact(uuid, uuid, uuid) to treadle_worker;
