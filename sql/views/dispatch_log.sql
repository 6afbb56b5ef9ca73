-- dispatch_log: every attempt of every task: agent, times and outcome.
--
-- Ended attempts are in the table attempts; the current or completing attempt is on the task.

create view treadle.dispatch_log as
select
  attempts.task_id,
  attempts.attempt,
  attempts.agent_id,
  attempts.claimed_at,
  attempts.started_at,
  attempts.ended_at,
  attempts.outcome,
  attempts.class,
  attempts.reason,
  attempts.error,
  attempts.cost_usd,
  attempts.model,
  attempts.feedback
from treadle.attempts
union all
select
  tasks.id,
  tasks.attempt,
  coalesce(tasks.agent_id, tasks.completed_by),
  tasks.claimed_at,
  tasks.started_at,
  tasks.completed_at,
  tasks.status,
  null,
  null,
  null,
  tasks.cost_usd - coalesce(
    (select sum(attempts.cost_usd) from treadle.attempts where attempts.task_id = tasks.id), 0
  ),
  coalesce(
    (
      select spend.model
      from treadle.spend
      where
        spend.task_id = tasks.id
        and spend.attempt = tasks.attempt
        -- A suspended attempt had the same number.
        and spend.at >= coalesce(tasks.claimed_at, tasks.started_at)
        and spend.model is not null
      order by spend.at desc
      limit 1
    ),
    (treadle.attempt_models(
      tasks.attempt, task_options.models, task_options.fallback_models,
      task_types.models, task_types.fallback_models
    ))[1]
  ),
  null
from treadle.tasks
left join treadle.task_options on tasks.has_options and tasks.id = task_options.task_id
left join treadle.task_types on tasks.type = task_types.name
where tasks.status in ('claimed', 'running', 'validating', 'completed');

comment on view treadle.dispatch_log is
'One row per attempt, including the current and the completing one. Filter by task_id.';
comment on column treadle.dispatch_log.task_id is 'Id of the task.';
comment on column treadle.dispatch_log.attempt is 'Number of the attempt, from 1.';
comment on column treadle.dispatch_log.agent_id is 'Agent that had the attempt.';
comment on column treadle.dispatch_log.claimed_at is 'When the attempt was claimed.';
comment on column treadle.dispatch_log.started_at is
'When the handler started; null if it has not.';
comment on column treadle.dispatch_log.ended_at is 'When the attempt ended; null while it runs.';
comment on column treadle.dispatch_log.outcome is
'How the attempt ended; the state of the task while it runs.';
comment on column treadle.dispatch_log.class is 'Failure class.';
comment on column treadle.dispatch_log.reason is 'Text of the failure.';
comment on column treadle.dispatch_log.error is 'Full error text, such as a traceback.';
comment on column treadle.dispatch_log.cost_usd is 'What it has cost, in dollars.';
comment on column treadle.dispatch_log.model is 'Model that the attempt used.';
comment on column treadle.dispatch_log.feedback is 'What validators reported, as JSON.';

grant select on treadle.dispatch_log to treadle_observer, treadle_operator;
