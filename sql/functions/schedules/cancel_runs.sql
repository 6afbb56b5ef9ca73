-- cancel_runs: cancel what a schedule made before and what has not ended.
--
-- Concurrency: see cancel_tasks; what ends meanwhile has ended.
-- Lock order:  tasks, dags, then the history.
-- Raises:      nothing.

create or replace function treadle.cancel_runs(
  p_schedule  treadle.schedules,
  p_nominal   timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_reason text := format(
    'schedule %s started again, for %s', p_schedule.name, treadle.utc_words(p_nominal)
  );
  v_actor  text := format('schedule:%s', p_schedule.name);
  v_tasks  uuid[];
  v_dags   uuid[];
begin
  select
    array_agg(live.task_id) filter (where live.task_id is not null),
    array_agg(live.dag_id) filter (where live.dag_id is not null)
  into v_tasks, v_dags
  from treadle.live_runs(p_schedule.id) as live;

  perform gone.id from treadle.cancel_tasks(v_tasks, v_reason, v_actor) as gone
  where v_tasks is not null;
  perform treadle.cancel_dag(old.id, v_reason, v_actor) from unnest(v_dags) as old (id);
end;
$$;

comment on function treadle.cancel_runs(treadle.schedules, timestamptz) is
'Internal: makes way for the next run of a schedule.';

revoke all on function treadle.cancel_runs(treadle.schedules, timestamptz) from public;
