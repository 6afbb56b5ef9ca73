-- prune_runs: forget what schedules and triggers did long ago.
--
-- What bounds them stays: the last run of a schedule, and what a trigger made while that is there.
--
-- Concurrency: rows are only ever added; nothing is waited for.
-- Lock order:  the history.
-- Raises:      nothing.

create or replace function treadle.prune_runs(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before timestamptz := treadle.old_before('runs');
  v_runs   integer;
  v_fires  integer;
begin
  if v_before is null then
    return 0;
  end if;
  delete from treadle.schedule_runs
  where schedule_runs.ctid = any (
    array(
      select runs.ctid
      from treadle.schedule_runs as runs
      where
        runs.fired_at <= v_before
        and exists (
          select from treadle.schedule_runs as later
          where later.schedule_id = runs.schedule_id and later.id > runs.id
        )
        and not exists (
          select from treadle.tasks
          where tasks.id = runs.task_id or tasks.dag_id = runs.dag_id
        )
      order by runs.id
      limit p_limit
      for update skip locked
    )
  );
  get diagnostics v_runs = row_count;

  delete from treadle.trigger_fires
  where trigger_fires.ctid = any (
    array(
      select fires.ctid
      from treadle.trigger_fires as fires
      where
        fires.fired_at <= v_before
        and not exists (select from treadle.events where events.id = fires.event_id)
        and not exists (
          select from treadle.tasks
          where tasks.id = fires.task_id or tasks.dag_id = fires.dag_id
        )
      limit p_limit
      for update skip locked
    )
  );
  get diagnostics v_fires = row_count;
  return v_runs + v_fires;
end;
$$;

comment on function treadle.prune_runs(integer) is
'Internal: deletes runs of schedules and fires of triggers that are older than they are kept.';

revoke all on function treadle.prune_runs(integer) from public;
