-- lock_visible: lock tasks or a DAG for a write; returns whether a restricted token sees them.
--
-- The write follows in the same transaction, so the visibility cannot change in between.
-- Tasks that do not exist are left out; the function that writes reports them.
--
-- Concurrency: waits for other transactions that have locked one of the rows.
-- Lock order:  tasks, dags, each by id.
-- Raises:      TR205 unknown DAG.

create or replace function treadle.lock_visible(
  p_tasks    uuid[],
  p_dag      uuid,
  p_queues   text[],
  p_project  uuid,
  p_agent    text
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  perform treadle.lock_tasks(p_tasks);
  if p_dag is not null then
    perform treadle.lock_whole_dag(p_dag);
    return exists (
      select from treadle.visible_dags(p_queues, p_project, p_agent) as seen where seen.id = p_dag
    );
  end if;
  return not exists (
    select from treadle.task_access
    where
      task_access.id = any (p_tasks)
      and not treadle.is_visible(
        task_access.queue, task_access.project_id, task_access.agent, p_queues, p_project, p_agent
      )
  );
end;
$$;

comment on function treadle.lock_visible(uuid[], uuid, text[], uuid, text) is
'Locks tasks or a DAG and returns whether a token with these restrictions sees all of them.';

grant execute on function treadle.lock_visible(uuid[], uuid, text[], uuid, text) to
treadle_operator;
