-- concurrency_status: which concurrency keys are full, and how many tasks wait for a slot.

create view treadle.concurrency_status as
with counted as (
  select
    tasks.concurrency_key as key,
    count(*) filter (where tasks.slot = 'held') as held,
    count(*) filter (where tasks.slot = 'waiting') as waiting,
    min(tasks.created_at) filter (where tasks.slot = 'waiting') as oldest_waiting_at
  from treadle.tasks
  where tasks.slot is not null
  group by tasks.concurrency_key
)

select
  coalesce(concurrency_keys.key, counted.key) as key,
  coalesce(concurrency_keys.max, 1) as max,
  coalesce(counted.held, 0) as held,
  coalesce(counted.waiting, 0) as waiting,
  counted.oldest_waiting_at
from treadle.concurrency_keys
full join counted on concurrency_keys.key = counted.key;

comment on view treadle.concurrency_status is
'One row per concurrency key: its limit, slots in use, and tasks that wait for a slot.';
comment on column treadle.concurrency_status.key is 'Concurrency key.';
comment on column treadle.concurrency_status.max is 'How many tasks may run at once.';
comment on column treadle.concurrency_status.held is 'Slots in use.';
comment on column treadle.concurrency_status.waiting is 'Tasks that wait for a slot.';
comment on column treadle.concurrency_status.oldest_waiting_at is
'When the oldest waiting task was created.';

grant select on treadle.concurrency_status to treadle_observer, treadle_operator;
