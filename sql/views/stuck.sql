-- stuck: tasks that should move and do not, and why. Empty if there is no problem.
--
-- Ready tasks are counted by lane, since all tasks of a lane wait for the same thing.

create view treadle.stuck as
with waiting as (
  select
    tasks.lane_id,
    count(*) as tasks,
    min(tasks.created_at) as since,
    (array_agg(tasks.id order by tasks.id))[1] as example_id
  from treadle.tasks
  where tasks.status = 'ready'
  group by tasks.lane_id
),

closed as (
  select
    waiting.*,
    lanes.queue,
    lanes.type,
    treadle.lane_problem(waiting.lane_id) as reason
  from waiting
  inner join treadle.lanes on waiting.lane_id = lanes.id
)

select
  closed.reason,
  'ready' as status,
  closed.queue,
  closed.type,
  closed.tasks,
  closed.since,
  closed.example_id
from closed
where closed.reason is not null
union all
select
  'the claim of agent ' || tasks.agent_id || ' has expired, but no reaper has ended it',
  tasks.status,
  tasks.queue,
  tasks.type,
  1,
  tasks.lease_until,
  tasks.id
from treadle.tasks
where
  tasks.status in ('claimed', 'running', 'validating')
  and treadle.claim_expiry_reason(
    tasks, (select treadle.view_clock()) - interval '15 seconds'
  ) is not null
union all
select
  'due since ' || to_char(coalesce(tasks.retry_at, tasks.run_at), 'YYYY-MM-DD HH24:MI:SS')
  || ', but no promoter has made it ready',
  tasks.status,
  tasks.queue,
  tasks.type,
  1,
  coalesce(tasks.retry_at, tasks.run_at),
  tasks.id
from treadle.tasks
where
  (
    tasks.status = 'retrying'
    and tasks.retry_at < (select treadle.view_clock()) - interval '15 seconds'
  )
  or (
    tasks.status = 'pending' and tasks.blocked_count = 0 and tasks.slot is null
    and tasks.budget_id is null
    and tasks.run_at < (select treadle.view_clock()) - interval '15 seconds'
  )
union all
select
  'it depends on ' || coalesce(dead.name, dead.id::text)
  || ', which was dead-lettered: ' || coalesce(
    dead.failure_reason, dead.failure_class
  ),
  'pending',
  min(tasks.queue),
  min(tasks.type),
  count(*),
  dead.completed_at,
  (array_agg(tasks.id order by tasks.id))[1]
from treadle.dead_letters
inner join treadle.tasks as dead on dead_letters.task_id = dead.id
inner join treadle.dependencies on dead.id = dependencies.depends_on
inner join treadle.tasks on dependencies.task_id = tasks.id
where
  dead_letters.resolution is null
  and dependencies.met_at is null
  and tasks.completed_at is null
group by dead.id
union all
select
  'its question expired at ' || to_char(waits.expires_at, 'YYYY-MM-DD HH24:MI:SS')
  || ' and no promoter has processed it',
  tasks.status,
  tasks.queue,
  tasks.type,
  1,
  waits.expires_at,
  tasks.id
from treadle.waits
inner join treadle.tasks on waits.task_id = tasks.id
where
  waits.status = 'open' and waits.expires_at < (select treadle.view_clock()) - interval '15 seconds'
union all
select
  'the budget of ' || budget_status.scope || coalesce(' ' || budget_status.name, '')
  || ' has $' || round(budget_status.left_usd, 2) || ' left of $'
  || round(budget_status.limit_usd, 2),
  'pending',
  min(tasks.queue),
  min(tasks.type),
  count(*),
  min(tasks.created_at),
  (array_agg(tasks.id order by tasks.id))[1]
from treadle.tasks
inner join treadle.budget_status on tasks.budget_id = budget_status.id
where tasks.status = 'pending'
group by
  budget_status.id, budget_status.scope, budget_status.name, budget_status.left_usd,
  budget_status.limit_usd
union all
select
  'a slot or budget may have room since ' || treadle.format_utc(min(admissions.at))
  || ', but no promoter has checked',
  'pending',
  min(tasks.queue),
  min(tasks.type),
  count(distinct tasks.id),
  min(admissions.at),
  (array_agg(tasks.id order by tasks.id))[1]
from treadle.admissions
inner join treadle.tasks
  on
    admissions.key = coalesce(tasks.concurrency_key, tasks.budget_id::text)
    and tasks.status = 'pending'
    and (tasks.slot = 'waiting' or tasks.budget_id is not null)
where admissions.at < (select treadle.view_clock()) - interval '15 seconds'
group by admissions.kind, admissions.key;

comment on view treadle.stuck is
'Tasks that should move and do not, with the reason; ready tasks are grouped by lane.';
comment on column treadle.stuck.reason is 'Why the tasks do not move.';
comment on column treadle.stuck.status is 'State of the tasks.';
comment on column treadle.stuck.queue is 'Queue of the tasks.';
comment on column treadle.stuck.type is 'Type of the tasks.';
comment on column treadle.stuck.tasks is 'How many tasks are affected.';
comment on column treadle.stuck.since is 'Since when the oldest of them has waited.';
comment on column treadle.stuck.example_id is 'Id of one of the tasks.';

grant select on treadle.stuck to treadle_observer, treadle_operator;
