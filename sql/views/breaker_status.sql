-- breaker_status: the circuit breaker of every type: its state, its failures, and when its probe is
-- due.

create view treadle.breaker_status as
select
  task_types.name as type,
  coalesce(breakers.state, 'closed') as state,
  coalesce(breakers.failures, 0) as failures,
  coalesce((task_types.breaker ->> 'threshold')::integer, 5) as threshold,
  breakers.opened_at,
  breakers.opened_by,
  breakers.probe_at,
  breakers.probe_task,
  breakers.last_failure_at,
  breakers.last_error,
  coalesce((task_types.breaker ->> 'first_probe_s')::float8, 60) as first_probe_s,
  coalesce((task_types.breaker ->> 'cooldown_s')::float8, 300) as cooldown_s
from treadle.task_types
left join treadle.breakers on task_types.name = breakers.type;

comment on view treadle.breaker_status is
'Circuit breakers by type.';
comment on column treadle.breaker_status.type is 'Task type.';
comment on column treadle.breaker_status.state is 'closed, open or half_open.';
comment on column treadle.breaker_status.failures is 'Failures in a row that count now.';
comment on column treadle.breaker_status.threshold is
'Failures in a row that open it; 0 means that there is no breaker.';
comment on column treadle.breaker_status.opened_at is
'When it opened last, also if it is closed now.';
comment on column treadle.breaker_status.opened_by is
'Actor that opened it manually; null if failures did.';
comment on column treadle.breaker_status.probe_at is 'When a probe is due.';
comment on column treadle.breaker_status.probe_task is 'Task that is the probe now.';
comment on column treadle.breaker_status.last_failure_at is 'When a task of the type failed last.';
comment on column treadle.breaker_status.last_error is 'Text of the last error.';
comment on column treadle.breaker_status.first_probe_s is
'Seconds until the first probe after it opens.';
comment on column treadle.breaker_status.cooldown_s is
'Seconds until the next probe after a failed one.';

grant select on treadle.breaker_status to treadle_observer, treadle_operator;
