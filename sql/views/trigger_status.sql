-- trigger_status: every trigger, its event and filter, and its results.

create view treadle.trigger_status as
select
  triggers.name,
  case when triggers.paused_at is null then 'active' else 'paused' end as state,
  triggers.on_event,
  triggers.filter,
  triggers.template,
  triggers.failure_rate,
  triggers.description,
  triggers.max_depth,
  triggers.max_per_hour,
  triggers.fired,
  triggers.refused,
  triggers.failed,
  triggers.fired_at,
  triggers.last_task,
  triggers.last_dag,
  triggers.last_error,
  triggers.error_at,
  triggers.passed_at,
  triggers.paused_at,
  triggers.paused_by,
  triggers.paused_reason,
  triggers.created_by,
  triggers.created_at,
  triggers.updated_at,
  triggers.id
from treadle.triggers;

comment on view treadle.trigger_status is
'Triggers: event, filter and template, how often they fired, and the last error.';
comment on column treadle.trigger_status.name is 'Name of the trigger.';
comment on column treadle.trigger_status.state is 'active or paused.';
comment on column treadle.trigger_status.on_event is 'Event kind that it fires on.';
comment on column treadle.trigger_status.filter is 'JSON that an event must contain.';
comment on column treadle.trigger_status.template is 'Template of the task or DAG.';
comment on column treadle.trigger_status.failure_rate is 'Failure rate that it fires on.';
comment on column treadle.trigger_status.description is 'Description for people.';
comment on column treadle.trigger_status.max_depth is 'Longest allowed chain of triggers.';
comment on column treadle.trigger_status.max_per_hour is
'How often it may fire per hour; null for no limit.';
comment on column treadle.trigger_status.fired is 'How often it fired.';
comment on column treadle.trigger_status.refused is 'How often a limit stopped it.';
comment on column treadle.trigger_status.failed is 'How often it failed.';
comment on column treadle.trigger_status.fired_at is 'When it fired last.';
comment on column treadle.trigger_status.last_task is 'Task that it created last.';
comment on column treadle.trigger_status.last_dag is 'DAG that it created last.';
comment on column treadle.trigger_status.last_error is 'Text of the last error.';
comment on column treadle.trigger_status.error_at is 'When the last error occurred.';
comment on column treadle.trigger_status.passed_at is 'When its failure rate was exceeded last.';
comment on column treadle.trigger_status.paused_at is 'When it was paused; null if it is not.';
comment on column treadle.trigger_status.paused_by is 'Actor that paused it.';
comment on column treadle.trigger_status.paused_reason is 'Why it was paused.';
comment on column treadle.trigger_status.created_by is 'Actor that created it.';
comment on column treadle.trigger_status.created_at is 'When it was created.';
comment on column treadle.trigger_status.updated_at is 'When it was changed last.';
comment on column treadle.trigger_status.id is 'Id of the trigger.';

grant select on treadle.trigger_status to treadle_observer, treadle_operator;
