-- dispatch_log: every attempt of every task: who got it, when, how it ended.
--
-- Ended attempts are in attempts; the one that is alive or completed the task is on the task.

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
        and spend.model is not null
      order by spend.at desc
      limit 1
    ),
    (treadle.attempt_models(
      tasks.attempt, tasks.models, tasks.fallback_models,
      task_types.models, task_types.fallback_models
    ))[1]
  ),
  null
from treadle.tasks
left join treadle.task_types on tasks.type = task_types.name
where tasks.status in ('claimed', 'running', 'validating', 'completed');

comment on view treadle.dispatch_log is
'One row per attempt, the live and the completing ones included; filter by task_id.';

grant select on treadle.dispatch_log to treadle_observer, treadle_operator;
