-- type_status: every task type with its settings, and whether its tasks can be claimed now.

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
          gates.closed_until > (select treadle.view_clock())
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
  task_types.output_type,
  task_types.models,
  task_types.fallback_models
from treadle.task_types
left join treadle.breakers on task_types.name = breakers.type;

comment on view treadle.type_status is
'Task types with their settings and state: open, paused, or closed by a gate or breaker.';
comment on column treadle.type_status.type is 'Name of the type.';
comment on column treadle.type_status.state is
'open, paused, closed (by a gate), breaker open or breaker half-open.';
comment on column treadle.type_status.paused_at is 'When it was paused; null if it is not.';
comment on column treadle.type_status.paused_by is 'Actor that paused it.';
comment on column treadle.type_status.paused_reason is 'Why it was paused.';
comment on column treadle.type_status.description is 'Description for people.';
comment on column treadle.type_status.priority is 'Default priority of its tasks.';
comment on column treadle.type_status.max_attempts is 'Default number of attempts.';
comment on column treadle.type_status.timeout_s is 'Default time limit of an attempt, in seconds.';
comment on column treadle.type_status.ageing_rate is
'Default points of priority gained per minute of waiting.';
comment on column treadle.type_status.retry is 'Retry policy of its tasks.';
comment on column treadle.type_status.gates is 'Keys of the gates that its tasks pass.';
comment on column treadle.type_status.breaker is 'Settings of its breaker.';
comment on column treadle.type_status.max_cost_usd is 'Default cost limit of a task, in dollars.';
comment on column treadle.type_status.max_tokens is 'Default token limit of a task.';
comment on column treadle.type_status.on_budget is
'What happens if a limit is reached: ask or fail.';
comment on column treadle.type_status.validation is 'Validators that check the output.';
comment on column treadle.type_status.report is 'Whether a decision report is required.';
comment on column treadle.type_status.output_type is
'Kind of the outputs: code, markdown, json or artifact.';
comment on column treadle.type_status.models is 'Models that may be used; null for any.';
comment on column treadle.type_status.fallback_models is 'Models to use after the first one fails.';

grant select on treadle.type_status to treadle_observer, treadle_operator;
