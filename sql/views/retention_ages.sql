-- retention_ages: what is kept how long, and what becomes of it then.

create view treadle.retention_ages as
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

comment on view treadle.retention_ages is
'How long finished tasks of each queue, events, agents and runs are kept; empty is for ever.';

grant select on treadle.retention_ages to treadle_observer, treadle_operator;
