-- stuck: what should move and does not, and why. Empty when all is well.
--
-- Ready tasks are counted by lane, since all of a lane wait for the same thing.

create view treadle.stuck as
with live as (
  select agents.*
  from treadle.agents
  where
    agents.status = 'active'
    and agents.heartbeat_at + make_interval(secs => 3 * agents.heartbeat_s) > clock_timestamp()
),

waiting as (
  select
    tasks.lane_id,
    count(*) as tasks,
    min(tasks.created_at) as since,
    (array_agg(tasks.id order by tasks.id))[1] as example_id
  from treadle.tasks
  where tasks.status = 'ready'
  group by tasks.lane_id
)

select
  case
    when queues.paused_at is not null
      then 'queue ' || queues.name || ' is paused' || coalesce(': ' || queues.paused_reason, '')
    when
      lanes.agent_id is not null
      and not exists (select from live where live.id = lanes.agent_id)
      then 'assigned to agent ' || lanes.agent_id || ', which is not active'
    when not exists (select from live where lanes.queue = any (live.queues))
      then 'no live agent serves queue ' || lanes.queue
    when
      not exists (
        select from live
        where
          lanes.queue = any (live.queues)
          and (live.task_types is null or lanes.type = any (live.task_types))
      )
      then 'no live agent of the queue handles type ' || lanes.type
    else 'no live agent of the queue has all of ' || lanes.capabilities::text
  end as reason,
  'ready' as status,
  lanes.queue,
  lanes.type,
  waiting.tasks,
  waiting.since,
  waiting.example_id
from waiting
inner join treadle.lanes on waiting.lane_id = lanes.id
inner join treadle.queues on lanes.queue = queues.name
where
  queues.paused_at is not null
  or not exists (
    select from live
    where
      lanes.queue = any (live.queues)
      and (live.task_types is null or lanes.type = any (live.task_types))
      and lanes.capabilities <@ live.capabilities
      and (lanes.agent_id is null or lanes.agent_id = live.id)
  )
union all
select
  'the claim of ' || tasks.agent_id || ' ran out and no reaper took it back',
  tasks.status,
  tasks.queue,
  tasks.type,
  1,
  tasks.lease_until,
  tasks.id
from treadle.tasks
where
  tasks.status in ('claimed', 'running', 'validating')
  and treadle.stale_reason(tasks, clock_timestamp() - interval '15 seconds') is not null
union all
select
  'due since ' || to_char(coalesce(tasks.retry_at, tasks.run_at), 'YYYY-MM-DD HH24:MI:SS')
  || ' and no promoter made it ready',
  tasks.status,
  tasks.queue,
  tasks.type,
  1,
  coalesce(tasks.retry_at, tasks.run_at),
  tasks.id
from treadle.tasks
where
  (tasks.status = 'retrying' and tasks.retry_at < clock_timestamp() - interval '15 seconds')
  or (
    tasks.status = 'pending' and tasks.blocked_count = 0
    and tasks.run_at < clock_timestamp() - interval '15 seconds'
  )
union all
select
  'it depends on ' || coalesce(dead.name, dead.id::text) || ', which gave up: ' || coalesce(
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
  || ' and no promoter noticed',
  tasks.status,
  tasks.queue,
  tasks.type,
  1,
  waits.expires_at,
  tasks.id
from treadle.waits
inner join treadle.tasks on waits.task_id = tasks.id
where
  waits.status = 'open' and waits.expires_at < clock_timestamp() - interval '15 seconds';

comment on view treadle.stuck is
'Tasks that should move and do not, with the reason; ready ones are grouped by lane.';

grant select on treadle.stuck to treadle_observer, treadle_operator;
