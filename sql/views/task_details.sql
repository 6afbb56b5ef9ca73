-- task_details: a task with all its fields.

create view treadle.task_details as
select
  tasks.id,
  tasks.queue,
  tasks.type,
  tasks.name,
  tasks.title,
  tasks.status,
  tasks.priority,
  round(
    (tasks.rank - treadle.ageing_offset(lanes.ageing, (select treadle.view_clock()))) / 1000000.0, 3
  )
    as effective_priority,
  ((lanes.ageing - lanes.urgency) / 1000000.0)::numeric(10, 6) as ageing_rate,
  tasks.critical_path,
  tasks.deadline_at,
  tasks.spec,
  tasks.inputs,
  tasks.output,
  (
    select
      jsonb_agg(
        jsonb_build_object(
          'id', artifacts.id, 'name', artifacts.name, 'uri', artifacts.uri,
          'media_type', artifacts.media_type, 'bytes', artifacts.bytes
        )
        order by artifacts.created_at, artifacts.id
      )
    from treadle.artifacts
    where artifacts.task_id = tasks.id and artifacts.status in ('stored', 'linked')
  ) as artifacts,
  coalesce(task_options.validation, task_types.validation) as validation,
  case coalesce(task_options.report, task_types.report)
    when 'required' then 'required' else 'optional'
  end as report,
  coalesce(task_options.output_type, task_types.output_type) as output_type,
  results.decision_report,
  case when tasks.completed_at is not null then tasks.status end as outcome,
  tasks.failure_class,
  tasks.failure_reason,
  exists (
    select from treadle.dead_letters
    where
      dead_letters.task_id = tasks.id
      and dead_letters.poison_pill
      and dead_letters.resolution is null
  ) as poison_pill,
  treadle.attempt_models(
    tasks.attempt, task_options.models, task_options.fallback_models,
    task_types.models, task_types.fallback_models
  ) as models,
  task_options.fallback_models,
  (
    select
      jsonb_agg(
        jsonb_build_object('attempt', noted.attempt, 'at', noted.at, 'note', noted.note)
        order by noted.number
      )
    from treadle.attempt_notes as noted
    where noted.task_id = tasks.id
  ) as attempt_notes,
  tasks.attempt,
  tasks.max_attempts,
  tasks.rate_limits,
  treadle.retry_policy(tasks.queue, tasks.type, task_options.retry) as retry,
  tasks.retry_at,
  tasks.run_at,
  tasks.timeout_s,
  tasks.agent_id,
  tasks.claimed_at,
  tasks.started_at,
  tasks.heartbeat_at,
  tasks.lease_until,
  tasks.progress,
  lanes.capabilities,
  lanes.gates,
  tasks.concurrency_key,
  tasks.slot,
  tasks.assigned_agent,
  array(
    select dependencies.depends_on
    from treadle.dependencies
    where dependencies.task_id = tasks.id
    order by 1
  ) as depends_on,
  array(
    select dependencies.depends_on
    from treadle.dependencies
    where dependencies.task_id = tasks.id and dependencies.met_at is null
    order by 1
  ) as blocked_by,
  tasks.parent_id,
  task_options.forked_from,
  tasks.dag_id,
  tasks.project_id,
  tasks.idempotency_key,
  task_options.consumer,
  results.consumed_at,
  task_options.external_ref,
  tasks.tags,
  tasks.created_by,
  task_options.source,
  task_options.source_job,
  task_options.notes,
  tasks.created_at,
  tasks.completed_at,
  tasks.completed_by,
  round(
    extract(
      epoch from coalesce(tasks.completed_at, (select treadle.view_clock())) - tasks.created_at
      - coalesce(
        treadle.run_time(
          tasks.id,
          tasks.status,
          tasks.started_at,
          tasks.completed_at,
          (select treadle.view_clock())
        ),
        '0'
      )
    ), 3
  ) as wait_s,
  round(
    extract(
      epoch from treadle.run_time(
        tasks.id, tasks.status, tasks.started_at, tasks.completed_at, (select treadle.view_clock())
      )
    ),
    3
  ) as run_s,
  tasks.cost_usd,
  tasks.max_cost_usd,
  (
    select coalesce(max(reservations.usd), 0)
    from treadle.reservations
    where reservations.task_id = tasks.id
  ) as reserved_usd,
  task_options.max_tokens,
  task_options.on_budget,
  tasks.budget_id,
  (
    select coalesce(sum(spend.input_tokens), 0)::bigint
    from treadle.spend
    where spend.task_id = tasks.id
  ) as input_tokens,
  (
    select coalesce(sum(spend.output_tokens), 0)::bigint
    from treadle.spend
    where spend.task_id = tasks.id
  ) as output_tokens
from treadle.tasks
left join treadle.task_options on tasks.has_options and tasks.id = task_options.task_id
left join treadle.results on tasks.id = results.task_id
inner join treadle.lanes on tasks.lane_id = lanes.id
left join treadle.task_types on tasks.type = task_types.name;

comment on view treadle.task_details is 'One row per task with all its fields.';
comment on column treadle.task_details.id is 'Id of the task.';
comment on column treadle.task_details.queue is 'Name of its queue.';
comment on column treadle.task_details.type is 'Name of its task type.';
comment on column treadle.task_details.name is 'Name in its DAG.';
comment on column treadle.task_details.title is 'Short text for people.';
comment on column treadle.task_details.status is 'Current state.';
comment on column treadle.task_details.priority is 'Priority from 0 (first) to 100.';
comment on column treadle.task_details.effective_priority is
'Priority including ageing and deadline; lower is sooner.';
comment on column treadle.task_details.ageing_rate is
'Points of priority gained per minute of waiting.';
comment on column treadle.task_details.critical_path is
'Length of the longest chain of tasks behind it.';
comment on column treadle.task_details.deadline_at is
'When it should be done; it becomes more urgent before.';
comment on column treadle.task_details.spec is 'Payload of the task.';
comment on column treadle.task_details.inputs is 'References to outputs of other tasks.';
comment on column treadle.task_details.output is 'Result of the task.';
comment on column treadle.task_details.artifacts is 'Artifacts of the task.';
comment on column treadle.task_details.validation is 'Validators that check the output.';
comment on column treadle.task_details.report is 'Whether a decision report is required.';
comment on column treadle.task_details.output_type is
'Kind of the output: code, markdown, json or artifact.';
comment on column treadle.task_details.decision_report is 'Decision report of the last attempt.';
comment on column treadle.task_details.outcome is 'State in which it ended; null while it is open.';
comment on column treadle.task_details.failure_class is 'Class of the last failure.';
comment on column treadle.task_details.failure_reason is 'Text of the last failure.';
comment on column treadle.task_details.poison_pill is 'Whether it killed several workers.';
comment on column treadle.task_details.models is 'Models that may be used; null for any.';
comment on column treadle.task_details.fallback_models is
'Models to use after the first one fails.';
comment on column treadle.task_details.attempt_notes is 'Notes that attempts left for later ones.';
comment on column treadle.task_details.attempt is 'How many attempts were started.';
comment on column treadle.task_details.max_attempts is 'How many attempts the task may use.';
comment on column treadle.task_details.rate_limits is
'Attempts that ended with a rate limit, which are not counted.';
comment on column treadle.task_details.retry is 'Retry policy.';
comment on column treadle.task_details.retry_at is 'When the next attempt may start.';
comment on column treadle.task_details.run_at is 'The task does not start before this time.';
comment on column treadle.task_details.timeout_s is 'How many seconds an attempt may take.';
comment on column treadle.task_details.agent_id is 'Agent that has claimed it.';
comment on column treadle.task_details.claimed_at is 'When the attempt was claimed.';
comment on column treadle.task_details.started_at is
'When the handler started; null if it has not.';
comment on column treadle.task_details.heartbeat_at is 'When its agent sent the last heartbeat.';
comment on column treadle.task_details.lease_until is 'When the claim expires without a heartbeat.';
comment on column treadle.task_details.progress is 'Progress that the handler reported.';
comment on column treadle.task_details.capabilities is 'Capabilities that an agent must have.';
comment on column treadle.task_details.gates is 'Keys of the gates that it passes.';
comment on column treadle.task_details.concurrency_key is 'Tasks with the same key share slots.';
comment on column treadle.task_details.slot is 'State of its slot: waiting or held.';
comment on column treadle.task_details.assigned_agent is 'The only agent that may claim it.';
comment on column treadle.task_details.depends_on is 'Ids of the tasks that it depends on.';
comment on column treadle.task_details.blocked_by is 'Dependencies that are not met yet.';
comment on column treadle.task_details.parent_id is 'Id of the task that spawned it.';
comment on column treadle.task_details.forked_from is 'Task that it was forked from.';
comment on column treadle.task_details.dag_id is 'Id of its DAG; null outside a DAG.';
comment on column treadle.task_details.project_id is 'Id of its project.';
comment on column treadle.task_details.idempotency_key is
'A second task with this key returns the first one.';
comment on column treadle.task_details.consumer is 'Name of the consumer that takes the result.';
comment on column treadle.task_details.consumed_at is 'When the consumer took the result.';
comment on column treadle.task_details.external_ref is 'Reference in another system.';
comment on column treadle.task_details.tags is 'Tags.';
comment on column treadle.task_details.created_by is 'Actor that created it.';
comment on column treadle.task_details.source is
'Where the task comes from, such as schedule or trigger.';
comment on column treadle.task_details.source_job is 'Name of the schedule, trigger or job.';
comment on column treadle.task_details.notes is 'Notes of people.';
comment on column treadle.task_details.created_at is 'When it was created.';
comment on column treadle.task_details.completed_at is
'When the task ended; null while it is open.';
comment on column treadle.task_details.completed_by is 'Agent that completed it.';
comment on column treadle.task_details.wait_s is
'Seconds so far, from creation to the end, in which no handler ran.';
comment on column treadle.task_details.run_s is
'Seconds so far in which a handler ran, over all attempts; null if none has started.';
comment on column treadle.task_details.cost_usd is 'What it has cost, in dollars.';
comment on column treadle.task_details.max_cost_usd is 'What the task may cost, in dollars.';
comment on column treadle.task_details.reserved_usd is 'Dollars reserved for it.';
comment on column treadle.task_details.max_tokens is 'How many tokens the task may use.';
comment on column treadle.task_details.on_budget is
'What happens if a limit is reached: ask or fail.';
comment on column treadle.task_details.budget_id is
'Id of the budget that it waits for; null if none.';
comment on column treadle.task_details.input_tokens is 'Input tokens used.';
comment on column treadle.task_details.output_tokens is 'Output tokens used.';

grant select on treadle.task_details to treadle_observer, treadle_operator;
