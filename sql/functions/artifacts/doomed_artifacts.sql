-- doomed_artifacts: the files to delete: never finished and nobody's, or of tasks that are gone.
--
-- select * from treadle.doomed_artifacts();
--
-- Delete each file in the store that its uri names, then forget_artifacts. A reservation counts as
-- nobody's once its claim has ended and it is older than the grace. p_dry_run only looks; p_after
-- is the last id of a page.
--
-- Concurrency: a claim that has ended never comes back, so what is doomed cannot be stored.
-- Lock order:  artifacts.

create or replace function treadle.doomed_artifacts(
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
    case artifacts.status when 'doomed' then 'the task is gone' else 'never finished' end
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

comment on function treadle.doomed_artifacts(integer, double precision, uuid, boolean) is
'Artifacts whose files are to be deleted; nobody can use them from now on.';

grant execute on function treadle.doomed_artifacts(integer, double precision, uuid, boolean)
to treadle_worker;
