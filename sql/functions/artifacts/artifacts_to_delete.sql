-- artifacts_to_delete: list artifacts whose files are to be deleted: abandoned uploads, and files
-- of deleted tasks.
--
-- select * from treadle.artifacts_to_delete();
--
-- Delete each file at its uri, then call remove_deleted_artifacts. A reservation is abandoned once
-- its claim has ended and it is older than the grace period. p_dry_run changes nothing; p_after is
-- the last id of the previous page.
--
-- Concurrency: a claim that has ended never becomes valid again, so an artifact listed here cannot
-- be stored later.
-- Lock order:  artifacts.

create or replace function treadle.artifacts_to_delete(
  p_limit    integer default 1000,
  p_grace_s  double precision default 3600,
  p_after    uuid default null,
  p_dry_run  boolean default false
)
returns table (id uuid, key text, uri text, name text, task_id uuid, reason text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  c_first constant uuid := '00000000-0000-0000-0000-000000000000';
  v_ids   uuid[] := array(
    select artifacts.id
    from treadle.artifacts
    where
      artifacts.status in ('storing', 'doomed')
      and artifacts.id > coalesce(p_after, c_first)
      and (
        artifacts.status = 'doomed'
        or (
          artifacts.created_at < treadle.clock() - make_interval(secs => p_grace_s)
          and not exists (
            select from treadle.tasks
            where tasks.id = artifacts.task_id and tasks.claim_token = artifacts.claim_token
          )
        )
      )
    order by artifacts.id
    limit p_limit
  );
begin
  return query
  select
    artifacts.id, artifacts.key, artifacts.uri, artifacts.name, artifacts.task_id,
    case artifacts.status
      when 'doomed' then 'the task was deleted' else 'the upload was never finished'
    end
  from treadle.artifacts
  where artifacts.id = any (v_ids) and artifacts.status in ('storing', 'doomed')
  order by artifacts.id;

  if not p_dry_run then
    update treadle.artifacts
    set status = 'doomed'
    where artifacts.id = any (v_ids) and artifacts.status = 'storing';
  end if;
end;
$$;

comment on function treadle.artifacts_to_delete(integer, double precision, uuid, boolean) is
'Artifacts whose files are to be deleted; from now on no task can use them.';

grant execute on function treadle.artifacts_to_delete(integer, double precision, uuid, boolean)
to treadle_worker;
