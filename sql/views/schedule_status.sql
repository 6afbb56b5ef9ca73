-- schedule_status: every schedule: when it is due next, and what became of its last time.

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
'Schedules: active, paused or stopped, the next time, the last status, error, task and DAG.';

grant select on treadle.schedule_status to treadle_observer, treadle_operator;
