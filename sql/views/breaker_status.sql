-- breaker_status: the breaker of every type: its state, what it counts, and when its probe is due.

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
'Breakers by type; threshold 0 is none. opened_at is when it opened last, also of a closed one.';

grant select on treadle.breaker_status to treadle_observer, treadle_operator;
