-- prune_rows: archive tasks where their queues say so, and delete them with all that is theirs.
--
-- The decisions of people about dead letters stay. Money that was spent is summed up by the hour.
-- Files are doomed where the tasks are deleted: see tg_tasks__doom.
--
-- Concurrency: the caller holds the tasks and their DAGs, and has found nothing that needs them.
-- Lock order:  budgets, then the history.
-- Raises:      nothing.

create or replace function treadle.prune_rows(p_ids uuid[])
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_read treadle.event_readers := treadle.read_by_all();
  v_dags uuid[] := array(
    select distinct tasks.dag_id
    from treadle.tasks
    where tasks.id = any (p_ids) and tasks.dag_id is not null
  );
  v_gone integer;
begin
  if p_ids = '{}' then
    return 0;
  end if;
  perform treadle.archive_tasks(p_ids);
  perform treadle.prune_dags(v_dags, v_read) where v_dags <> '{}';
  perform treadle.sum_spend(p_ids);

  delete from treadle.attempts where attempts.task_id = any (p_ids);
  delete from treadle.dispatches where dispatches.task_id = any (p_ids);
  delete from treadle.steps where steps.task_id = any (p_ids);
  delete from treadle.answers
  where answers.wait_id = any (
    array(select waits.id from treadle.waits where waits.task_id = any (p_ids))
  );
  delete from treadle.waits where waits.task_id = any (p_ids);
  delete from treadle.dependencies where dependencies.depends_on = any (p_ids);
  delete from treadle.dependencies where dependencies.task_id = any (p_ids);
  delete from treadle.dead_letters where dead_letters.task_id = any (p_ids);
  delete from treadle.harness_nudges where harness_nudges.task_id = any (p_ids);
  delete from treadle.harness_actions where harness_actions.task_id = any (p_ids);
  -- What a reader has not seen yet, and what was emitted for others, goes by its own age.
  delete from treadle.events
  where
    events.task_id = any (p_ids) and events.key is null
    and (events.xid, events.id) <= (v_read.xid, v_read.id)
    and events.xid < pg_snapshot_xmin(pg_current_snapshot());
  delete from treadle.tasks where tasks.id = any (p_ids);
  get diagnostics v_gone = row_count;
  return v_gone;
end;
$$;

comment on function treadle.prune_rows(uuid[]) is
'Internal: lets finished tasks go; returns how many.';

revoke all on function treadle.prune_rows(uuid[]) from public;
