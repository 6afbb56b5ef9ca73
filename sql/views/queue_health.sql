-- queue_health: depth, oldest task and throughput of each queue.

create view treadle.queue_health as
select
  queues.name as queue,
  queues.paused_at is not null as paused,
  coalesce(live.ready, 0) as ready,
  coalesce(live.waiting, 0) as waiting,
  coalesce(live.in_flight, 0) as in_flight,
  coalesce(live.retrying, 0) as retrying,
  coalesce(dead.letters, 0) as dead_letters,
  live.oldest_ready_at,
  (select treadle.view_clock()) - live.oldest_ready_at as oldest_ready_age,
  coalesce(ended.completed, 0) as completed_5m,
  round(coalesce(ended.completed, 0) / 300.0, 2) as completed_per_s,
  coalesce(failed.attempts, 0) as failed_attempts_5m,
  ended.wait_p50_s,
  ended.run_p50_s,
  coalesce(live.depth, 0) as depth,
  queues.max_depth,
  queues.fair
from treadle.queues
left join lateral (
  select
    count(*) filter (where tasks.status not in ('claimed', 'running', 'validating')) as depth,
    count(*) filter (where tasks.status = 'ready') as ready,
    count(*) filter (where tasks.status in ('created', 'pending', 'blocked')) as waiting,
    count(*) filter (where tasks.status in ('claimed', 'running', 'validating')) as in_flight,
    count(*) filter (where tasks.status = 'retrying') as retrying,
    min(tasks.created_at) filter (where tasks.status = 'ready') as oldest_ready_at
  from treadle.tasks
  where tasks.queue = queues.name and tasks.completed_at is null
) as live on true
left join lateral (
  select
    count(*) as completed,
    percentile_cont(0.5) within group (
      order by extract(epoch from tasks.completed_at - tasks.created_at - spent.run)
    )::numeric(12, 3) as wait_p50_s,
    percentile_cont(0.5) within group (
      order by extract(epoch from spent.run)
    )::numeric(12, 3) as run_p50_s
  from treadle.tasks
  cross join
    lateral (
      select
      -- Most tasks have one attempt, which is on the row.
        case
          when tasks.attempt > 1 or tasks.rate_limits > 0 or tasks.durable
            then treadle.run_time(
              tasks.id, tasks.status, tasks.started_at, tasks.completed_at, tasks.completed_at
            )
          else tasks.completed_at - tasks.started_at
        end as run
    ) as spent
  where
    tasks.queue = queues.name
    and tasks.status = 'completed'
    and tasks.completed_at > (select treadle.view_clock()) - interval '5 minutes'
) as ended on true
left join lateral (
  select count(*) as attempts
  from treadle.attempts
  inner join treadle.tasks on attempts.task_id = tasks.id
  where
    tasks.queue = queues.name
    and attempts.outcome = 'failed'
    and attempts.ended_at > (select treadle.view_clock()) - interval '5 minutes'
) as failed on true
left join lateral (
  select count(*) as letters
  from treadle.dead_letters
  inner join treadle.tasks on dead_letters.task_id = tasks.id
  where tasks.queue = queues.name and dead_letters.resolution is null
) as dead on true;

comment on view treadle.queue_health is
'One row per queue: counts by state, the oldest ready task, rates over the last five minutes.';
comment on column treadle.queue_health.queue is 'Name of its queue.';
comment on column treadle.queue_health.paused is 'Whether claims are paused.';
comment on column treadle.queue_health.ready is 'Tasks that can be claimed.';
comment on column treadle.queue_health.waiting is 'Tasks that wait for something else.';
comment on column treadle.queue_health.in_flight is 'Tasks claimed or running.';
comment on column treadle.queue_health.retrying is 'Tasks that wait for their next attempt.';
comment on column treadle.queue_health.dead_letters is 'Dead letters that wait for a decision.';
comment on column treadle.queue_health.oldest_ready_at is 'When the oldest ready task was created.';
comment on column treadle.queue_health.oldest_ready_age is 'Age of the oldest ready task.';
comment on column treadle.queue_health.completed_5m is 'Tasks completed in the last five minutes.';
comment on column treadle.queue_health.completed_per_s is
'Tasks completed per second, over five minutes.';
comment on column treadle.queue_health.failed_attempts_5m is
'Attempts that failed in the last five minutes.';
comment on column treadle.queue_health.wait_p50_s is
'Median seconds in which no handler ran, of tasks completed in the last five minutes.';
comment on column treadle.queue_health.run_p50_s is
'Median seconds in which a handler ran, of tasks completed in the last five minutes.';
comment on column treadle.queue_health.depth is 'Tasks that are not claimed and have not ended.';
comment on column treadle.queue_health.max_depth is 'How many tasks may wait; null for no limit.';
comment on column treadle.queue_health.fair is 'Whether projects share the queue fairly.';

grant select on treadle.queue_health to treadle_observer, treadle_operator;
