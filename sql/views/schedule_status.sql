-- schedule_status: every schedule, when it is due next, and the result of its last time.

create view treadle.schedule_status as
select
  schedules.name,
  case
    when schedules.paused_at is not null then 'paused'
    when schedules.next_at = 'infinity' then 'stopped'
    else 'active'
  end as state,
  schedules.cron,
  schedules.timezone,
  case when schedules.next_at < 'infinity' then schedules.next_at end as next_at,
  schedules.last_at,
  schedules.last_status,
  schedules.last_error,
  schedules.last_task,
  schedules.last_dag,
  case
    when queues.assignment = 'dispatch' then 'queue-' || schedules.last_task
  end as last_queue_id,
  case when schedules.template ? 'dag' then 'dag' else 'task' end as makes,
  coalesce(
    schedules.template #>> '{task,type}', schedules.template #>> '{dag,name}', schedules.name
  ) as what,
  coalesce(
    schedules.template #>> '{task,queue}', case when schedules.template ? 'task' then 'default' end
  ) as queue,
  schedules.jitter_s,
  schedules.catch_up,
  schedules.overlap,
  schedules.grace_s,
  schedules.template,
  schedules.paused_at,
  schedules.paused_by,
  schedules.paused_reason,
  schedules.declared is not null as in_code,
  schedules.created_by,
  schedules.created_at,
  schedules.updated_at,
  schedules.id
from treadle.schedules
left join treadle.queues on schedules.template #>> '{task,queue}' = queues.name;

comment on view treadle.schedule_status is
'Schedules: state, next time, and the status, error, task and DAG of the last run.';
comment on column treadle.schedule_status.name is 'Name of the schedule.';
comment on column treadle.schedule_status.state is 'active, paused or stopped.';
comment on column treadle.schedule_status.cron is 'Cron line.';
comment on column treadle.schedule_status.timezone is 'Time zone of the cron line.';
comment on column treadle.schedule_status.next_at is 'When it is due next.';
comment on column treadle.schedule_status.last_at is 'Its last nominal time.';
comment on column treadle.schedule_status.last_status is 'What became of that time.';
comment on column treadle.schedule_status.last_error is 'Text of the last error.';
comment on column treadle.schedule_status.last_task is 'Task that was created last.';
comment on column treadle.schedule_status.last_dag is 'DAG that was created last.';
comment on column treadle.schedule_status.last_queue_id is
'Queue id of the last task, for a dispatch queue.';
comment on column treadle.schedule_status.makes is 'Whether it enqueues a task or a dag.';
comment on column treadle.schedule_status.what is 'Type of the task, or name of the DAG.';
comment on column treadle.schedule_status.queue is 'Queue of the task.';
comment on column treadle.schedule_status.jitter_s is
'Longest random delay of a start, in seconds.';
comment on column treadle.schedule_status.catch_up is
'What happens to missed times: skip, one or all.';
comment on column treadle.schedule_status.overlap is
'What happens while an earlier run is open: allow, skip or cancel_previous.';
comment on column treadle.schedule_status.grace_s is 'Seconds after which a time counts as missed.';
comment on column treadle.schedule_status.template is 'Template of the task or DAG.';
comment on column treadle.schedule_status.paused_at is 'When it was paused; null if it is not.';
comment on column treadle.schedule_status.paused_by is 'Actor that paused it.';
comment on column treadle.schedule_status.paused_reason is 'Why it was paused.';
comment on column treadle.schedule_status.in_code is 'Whether application code declares it.';
comment on column treadle.schedule_status.created_by is 'Actor that created it.';
comment on column treadle.schedule_status.created_at is 'When it was created.';
comment on column treadle.schedule_status.updated_at is 'When it was changed last.';
comment on column treadle.schedule_status.id is 'Id of the schedule.';

grant select on treadle.schedule_status to treadle_observer, treadle_operator;
