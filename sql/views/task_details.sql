-- task_details: a task with everything about it, under the names that people use.

create view treadle.task_details as
select
  tasks.id,
  tasks.queue,
  tasks.type,
  tasks.name,
  tasks.title,
  tasks.status,
  tasks.priority,
  round((tasks.rank - treadle.rank_shift(lanes.ageing, now())) / 1000000.0, 3)
    as effective_priority,
  ((lanes.ageing - lanes.urgency) / 1000000.0)::numeric(10, 6) as ageing_rate,
  tasks.critical_path,
  tasks.deadline_at,
  tasks.spec,
  tasks.inputs,
  tasks.output,
  tasks.output_ref,
  tasks.artifacts,
  coalesce(tasks.validation, task_types.validation) as validation,
  case coalesce(tasks.report, task_types.report)
    when 'required' then 'required' else 'optional'
  end as report,
  tasks.decision_report,
  tasks.outcome,
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
    tasks.attempt, tasks.models, tasks.fallback_models,
    task_types.models, task_types.fallback_models
  ) as models,
  tasks.fallback_models,
  (
    -- Without the tokens, which are secret.
    select jsonb_agg(noted.note - 'token' order by noted.at)
    from jsonb_array_elements(tasks.attempt_notes) with ordinality as noted (note, at)
  ) as attempt_notes,
  tasks.attempt,
  tasks.max_attempts,
  tasks.rate_limits,
  treadle.retry_policy(tasks.queue, tasks.type, tasks.retry) as retry,
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
  tasks.forked_from,
  tasks.dag_id,
  tasks.project_id,
  tasks.idempotency_key,
  tasks.consumer,
  tasks.consumed_at,
  tasks.external_ref,
  tasks.tags,
  tasks.created_by,
  tasks.source,
  tasks.source_job,
  tasks.notes,
  tasks.created_at,
  tasks.completed_at,
  tasks.completed_by,
  tasks.cost_usd,
  tasks.max_cost_usd,
  (
    select coalesce(max(reservations.usd), 0)
    from treadle.reservations
    where reservations.task_id = tasks.id
  ) as reserved_usd,
  tasks.max_tokens,
  tasks.on_budget,
  tasks.budget_id,
  tasks.input_tokens,
  tasks.output_tokens
from treadle.tasks
inner join treadle.lanes on tasks.lane_id = lanes.id
left join treadle.task_types on tasks.type = task_types.name;

comment on view treadle.task_details is 'One row per task with all its fields.';

grant select on treadle.task_details to treadle_observer, treadle_operator;
