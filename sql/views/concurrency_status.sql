-- concurrency_status: which concurrency keys are full, and who waits for a slot.

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
'One row per concurrency key: its limit, slots held, tasks that wait for one.';

grant select on treadle.concurrency_status to treadle_observer, treadle_operator;
