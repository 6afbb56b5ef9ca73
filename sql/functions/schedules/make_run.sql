-- make_run: do the work of one nominal time: look at what still runs, and enqueue the template.
--
-- A full queue is a status of its own; any other error is kept with its text. Both leave nothing
-- else behind, and the schedule goes on.
--
-- Concurrency: the caller holds the schedule. Trouble that passes (deadlock, lock timeout, a server
--              that stops) is raised: the whole call is repeated.
-- Lock order:  as enqueue_batch, create_dag and cancel_tasks.
-- Raises:      only what passes.

create or replace function treadle.make_run(
  p_schedule  treadle.schedules,
  p_nominal   timestamptz,
  p_missed    boolean,
  p_now       timestamptz
)
returns treadle.schedule_runs
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_run  treadle.schedule_runs;
  v_made record;
begin
  v_run.schedule_id := p_schedule.id;
  v_run.schedule := p_schedule.name;
  v_run.nominal_at := p_nominal;
  v_run.fired_at := p_now;
  if p_missed then
    v_run.status := 'skipped_missed';
    return v_run;
  elsif treadle.was_run(p_schedule.id, p_nominal) then
    v_run.status := 'skipped_duplicate';
    return v_run;
  end if;

  begin
    if p_schedule.overlap = 'cancel_previous' then
      perform treadle.cancel_runs(p_schedule, p_nominal);
    elsif p_schedule.overlap = 'skip'
      and exists (select from treadle.live_runs(p_schedule.id)) then
      v_run.status := 'skipped_overlap';
      return v_run;
    end if;
    v_made := treadle.enqueue_template(p_schedule, p_nominal);
    if v_made.created then
      v_run.status := 'queued';
      v_run.task_id := v_made.task_id;
      v_run.dag_id := v_made.dag_id;
    else
      v_run.status := 'skipped_duplicate';
    end if;
  exception
    when sqlstate 'TR105' then
      v_run.status := 'skipped_queue_full';
      v_run.error := left(treadle.mask_text(sqlerrm), 2000);
    when transaction_rollback or lock_not_available or operator_intervention
      or insufficient_resources then
      raise;
    when others then
      v_run.status := 'failed';
      v_run.error := left(format('%s (%s)', treadle.mask_text(sqlerrm), sqlstate), 2000);
  end;
  return v_run;
end;
$$;

comment on function treadle.make_run(treadle.schedules, timestamptz, boolean, timestamptz) is
'Internal: makes the work of one nominal time and says what became of it.';

revoke all on function treadle.make_run(treadle.schedules, timestamptz, boolean, timestamptz)
from public;
