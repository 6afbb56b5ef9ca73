-- schedule_log: the result of each nominal time, and the state of its task or DAG.

create view treadle.schedule_log as
select
  schedule_runs.schedule,
  schedule_runs.nominal_at,
  schedule_runs.missed_until,
  schedule_runs.fired_at,
  schedule_runs.status,
  coalesce(tasks.status, dags.status) as now,
  schedule_runs.task_id,
  schedule_runs.dag_id,
  schedule_runs.actor,
  schedule_runs.error,
  schedule_runs.id
from treadle.schedule_runs
left join treadle.tasks on schedule_runs.task_id = tasks.id
left join treadle.dags on schedule_runs.dag_id = dags.id;

comment on view treadle.schedule_log is
'Runs of schedules: nominal time, status, and the task or DAG with its current state.';
comment on column treadle.schedule_log.schedule is 'Name of the schedule.';
comment on column treadle.schedule_log.nominal_at is
'Nominal time of the run; null for an extra run.';
comment on column treadle.schedule_log.missed_until is
'Last of several missed times that share this row.';
comment on column treadle.schedule_log.fired_at is 'When it was handled.';
comment on column treadle.schedule_log.status is 'queued, failed, or why the time was skipped.';
comment on column treadle.schedule_log.now is 'Current state of its task or DAG.';
comment on column treadle.schedule_log.task_id is 'Task that it created.';
comment on column treadle.schedule_log.dag_id is 'DAG that it created.';
comment on column treadle.schedule_log.actor is 'Actor that asked for an extra run.';
comment on column treadle.schedule_log.error is 'Why it failed.';
comment on column treadle.schedule_log.id is 'Id of the row.';

grant select on treadle.schedule_log to treadle_observer, treadle_operator;
