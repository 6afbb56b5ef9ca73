-- type_status: every task type with its settings, and whether its tasks are claimed now.

create view treadle.type_status as
select
  task_types.name as type,
  case
    when task_types.paused_at is not null then 'paused'
    when breakers.state <> 'closed' then 'breaker ' || replace(breakers.state, '_', '-')
    when
      exists (
        select from treadle.gates
        where
          gates.closed_until > treadle.clock()
          and (gates.key = any (task_types.gates) or gates.key = 'type:' || task_types.name)
      )
      then 'closed'
    else 'open'
  end as state,
  task_types.paused_at,
  task_types.paused_by,
  task_types.paused_reason,
  task_types.description,
  task_types.priority,
  task_types.max_attempts,
  task_types.timeout_s,
  task_types.ageing_rate,
  task_types.retry,
  task_types.gates,
  task_types.breaker,
  task_types.max_cost_usd,
  task_types.max_tokens,
  task_types.on_budget,
  task_types.validation,
  task_types.report,
  task_types.models,
  task_types.fallback_models
from treadle.task_types
left join treadle.breakers on task_types.name = breakers.type;

comment on view treadle.type_status is
'Task types: open, paused, closed by one of their gates, or kept back by their breaker.';

grant select on treadle.type_status to treadle_observer, treadle_operator;
