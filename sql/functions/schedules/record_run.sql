-- record_run: keep what became of a nominal time, and tell who follows the events of trouble.
--
-- False when the time was dealt with before.
--
-- Concurrency: a second row for a time is refused by its key.
-- Lock order:  append-only tables.
-- Raises:      nothing.

create or replace function treadle.record_run(p_run treadle.schedule_runs)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into treadle.schedule_runs (
    schedule_id, schedule, nominal_at, missed_until, fired_at, status, task_id, dag_id, error, actor
  )
  values (
    p_run.schedule_id, p_run.schedule, p_run.nominal_at, p_run.missed_until, p_run.fired_at,
    p_run.status, p_run.task_id, p_run.dag_id, p_run.error, p_run.actor
  )
  on conflict (schedule_id, nominal_at) do nothing;
  if not found then
    if p_run.status = 'queued' then
      -- Work without its row would be work done twice: none of it may stay.
      raise unique_violation using
        message = format('%s at %s was dealt with before', p_run.schedule, p_run.nominal_at);
    end if;
    return false;
  end if;

  if p_run.status <> 'queued' then
    insert into treadle.events (at, kind, data)
    values (
      p_run.fired_at,
      case when p_run.status = 'failed' then 'schedule.failed' else 'schedule.skipped' end,
      jsonb_strip_nulls(
        jsonb_build_object(
          'schedule', p_run.schedule, 'nominal_at', p_run.nominal_at, 'status', p_run.status,
          'missed_until', p_run.missed_until, 'error', p_run.error
        )
      )
    );
  end if;
  return true;
end;
$$;

comment on function treadle.record_run(treadle.schedule_runs) is
'Internal: stores a run; false when its nominal time has one.';

revoke all on function treadle.record_run(treadle.schedule_runs) from public;
