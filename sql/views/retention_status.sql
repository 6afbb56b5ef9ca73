-- retention_status: how long things are kept, and whether they are archived then.

create view treadle.retention_status as
select
  kept.what,
  queues.name as queue,
  kept.keep_s,
  queues.prune_mode as mode
from treadle.queues
cross join
  lateral (
    values
    ('completed', queues.keep_completed_s),
    ('cancelled', queues.keep_cancelled_s),
    ('dead_lettered', queues.keep_dead_s)
  ) as kept (what, keep_s)
union all
select
  kinds.kind,
  null,
  retention.keep_s,
  'drop'
from (values ('events'), ('agents'), ('runs')) as kinds (kind)
left join treadle.retention on kinds.kind = retention.kind;

comment on view treadle.retention_status is
'How long ended tasks of each queue, events, agents and runs are kept.';
comment on column treadle.retention_status.what is
'completed, cancelled or dead_lettered tasks, events, agents or runs.';
comment on column treadle.retention_status.queue is 'Queue, for tasks.';
comment on column treadle.retention_status.keep_s is 'How many seconds it is kept; null forever.';
comment on column treadle.retention_status.mode is 'What happens then: archive or drop.';

grant select on treadle.retention_status to treadle_observer, treadle_operator;
