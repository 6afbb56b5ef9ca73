-- record_skipped_run: record that an extra run of a schedule found its queue full.
--
-- select treadle.record_skipped_run('nightly', 'queue push holds at most 50 tasks', 'me');
--
-- run_schedule raises an error and its changes are rolled back, so its caller calls this function
-- afterwards.
--
-- Lock order:  schedules, then the history.
-- Raises:      TR211 unknown schedule.

create or replace function treadle.record_skipped_run(
  p_name   text,
  p_error  text,
  p_actor  text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule treadle.schedules := treadle.find_schedule(p_name);
  v_run      treadle.schedule_runs;
begin
  v_run.schedule_id := v_schedule.id;
  v_run.schedule := v_schedule.name;
  v_run.fired_at := treadle.clock();
  v_run.status := 'skipped_queue_full';
  v_run.error := left(p_error, 2000);
  v_run.actor := coalesce(p_actor, session_user);
  perform treadle.record_run(v_run);
  update treadle.schedules
  set last_at = v_run.fired_at, last_status = v_run.status, last_error = v_run.error
  where schedules.id = v_schedule.id;
end;
$$;

comment on function treadle.record_skipped_run(text, text, text) is
'Record that an extra run of a schedule was skipped because its queue was full.';

grant execute on function treadle.record_skipped_run(text, text, text) to treadle_operator;
