-- push_queue: the entries of queue `push`, as the queue interface names them.
--
-- Waiting entries have a position, in the order in which they would be claimed.

create view treadle.push_queue as
with line as (
  select
    waiting.id,
    row_number() over (
      order by
        waiting.rank - treadle.ageing_offset(lanes.ageing, (select treadle.view_clock())),
        waiting.id
    )::integer as position
  from treadle.tasks as waiting
  inner join treadle.lanes on waiting.lane_id = lanes.id
  where
    waiting.queue = 'push'
    and waiting.completed_at is null
    and waiting.status not in ('claimed', 'running', 'validating')
)

select
  'queue-' || tasks.id as queue_id,
  case
    when tasks.status = 'claimed' then 'dispatching'
    when tasks.status in ('running', 'validating') then 'working'
    when tasks.status = 'dead_lettered' then 'failed'
    when tasks.status in ('completed', 'cancelled') then tasks.status
    else 'pending'
  end as state,
  line.position,
  tasks.created_at,
  coalesce(tasks.spec ->> 'prompt', '') as prompt,
  tasks.spec ->> 'model' as model,
  case
    when tasks.spec @? 'strict $.timeout_seconds ? (@ >= 1 && @ <= 31536000)'
      then (tasks.spec -> 'timeout_seconds')::integer
  end as timeout_seconds,
  coalesce(tasks.spec ->> 'session_id', dispatches.session_id) as session_id,
  case when tasks.spec @? 'strict $.project.keyvalue()' then tasks.spec -> 'project' end
    as project,
  case
    when not tasks.spec @? 'strict $.env.* ? (@.type() != "string")' then tasks.spec -> 'env'
  end as env,
  case
    when tasks.spec -> 'thinking' in ('true', 'false') then (tasks.spec -> 'thinking')::boolean
  end as thinking,
  dispatches.sent_at as dispatched_at,
  dispatches.agent_task_id as task_id,
  dispatches.agent_url,
  tasks.attempt as attempts,
  (
    select left(split_part(ended.error, e'\n', 1), 2000)
    from (
      select
        attempts.ended_at,
        coalesce(attempts.error, attempts.reason) as error
      from treadle.attempts
      where attempts.task_id = tasks.id and attempts.outcome in ('failed', 'rate_limited')
      union all
      select
        told.ended_at,
        told.error
      from treadle.dispatches as told
      where told.task_id = tasks.id and told.error is not null
    ) as ended
    order by ended.ended_at desc nulls last
    limit 1
  ) as last_error,
  case task_options.source
    when 'schedule' then 'scheduler' else coalesce(task_options.source, 'api')
  end as source,
  task_options.source_job,
  tasks.completed_at,
  tasks.status,
  tasks.id
from treadle.tasks
left join line on tasks.id = line.id
left join treadle.task_options on tasks.has_options and tasks.id = task_options.task_id
left join treadle.dispatches
  on
    tasks.id = dispatches.task_id
    and dispatches.claim_token = case
      when tasks.completed_at is null then tasks.claim_token else tasks.last_token
    end
where tasks.queue = 'push';

comment on view treadle.push_queue is
'Entries of queue push: state, position while waiting, and agent afterwards.';
comment on column treadle.push_queue.queue_id is
'Id in the queue interface: queue- and the task id.';
comment on column treadle.push_queue.state is
'pending, dispatching, working, completed, failed or cancelled.';
comment on column treadle.push_queue.position is 'Position among the waiting entries, from 1.';
comment on column treadle.push_queue.created_at is 'When it was created.';
comment on column treadle.push_queue.prompt is 'Prompt for the agent.';
comment on column treadle.push_queue.model is 'Model that was asked for.';
comment on column treadle.push_queue.timeout_seconds is 'Time limit in seconds.';
comment on column treadle.push_queue.session_id is 'Session that the prompt continues.';
comment on column treadle.push_queue.project is 'Project data of the request.';
comment on column treadle.push_queue.env is 'Environment variables of the request.';
comment on column treadle.push_queue.thinking is 'Whether thinking was asked for.';
comment on column treadle.push_queue.dispatched_at is 'When it was sent or given to an agent.';
comment on column treadle.push_queue.task_id is 'Id that the agent gave the task.';
comment on column treadle.push_queue.agent_url is 'URL of the agent that has it.';
comment on column treadle.push_queue.attempts is
'How often it was sent, without answers that the agent is busy.';
comment on column treadle.push_queue.last_error is 'Text of the last error.';
comment on column treadle.push_queue.source is
'Where the task comes from, such as schedule or trigger.';
comment on column treadle.push_queue.source_job is 'Name of the schedule, trigger or job.';
comment on column treadle.push_queue.completed_at is 'When it ended.';
comment on column treadle.push_queue.status is 'State of the task.';
comment on column treadle.push_queue.id is 'Id of the task.';

grant select on treadle.push_queue to treadle_observer, treadle_operator;
