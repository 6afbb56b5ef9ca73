-- trigger_status: every trigger, what it waits for, and how it has done.

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
'Triggers: on which event they make what, how often they fired, and what went wrong.';

grant select on treadle.trigger_status to treadle_observer, treadle_operator;
