-- schedule_history: what became of each nominal time, and what became of its task or DAG.

create view treadle.schedule_history as
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

comment on view treadle.schedule_history is
'Runs of schedules: the nominal time, the status, the task or DAG and how it stands.';

grant select on treadle.schedule_history to treadle_observer, treadle_operator;
