-- tg_tasks__notify: after an insert, notify workers of new tasks and check the depth of their
-- queues.
--
-- It reads the new rows of a statement once, and again if a worker is idle or a queue has a limit.
--
-- Concurrency: see notify_workers, request_slots and check_depth.
-- Lock order:  locks.
-- Raises:      TR105 queue full.

create or replace function treadle.tg_tasks__notify()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due_at timestamptz;
  v_keys   text[];
  v_capped boolean;
begin
  if exists (
    select from treadle.idle_queues where idle_queues.idle_until > clock_timestamp()
  ) then
    perform treadle.notify_workers(
      array(select distinct added.queue from added where added.status = 'ready')
    );
  end if;
  -- Rare properties are found in one pass, and only those found are handled.
  select
    min(added.run_at) filter (where added.status = 'pending'),
    array_agg(added.concurrency_key) filter (where added.slot = 'waiting'),
    bool_or(added.capped)
  into v_due_at, v_keys, v_capped
  from added
  where added.status = 'pending' or added.capped;
  if v_due_at is not null then
    perform treadle.notify_promoter(v_due_at);
  end if;
  if v_keys is not null then
    perform treadle.request_slots(v_keys);
  end if;
  if v_capped then
    perform treadle.check_depth(capped.queue, capped.tasks)
    from (
      select added.queue, count(*) as tasks
      from added
      where added.capped
      group by added.queue
      order by added.queue
    ) as capped;
  end if;
  return null;
end;
$$;

comment on function treadle.tg_tasks__notify() is 'Trigger: notifies idle workers of new tasks.';
