-- release_rows: make waiting tasks claimable and send notifications.

-- entry_slot: return the slot state of a task that waits for nothing else.
create or replace function treadle.entry_slot(p_key text, p_slot text)
returns text
language sql
immutable
parallel safe
return case when p_key is null or p_slot = 'held' then p_slot else 'waiting' end;

-- entry_status: return the state of a task that waits for nothing except, if it has a key, its
-- slot.
create or replace function treadle.entry_status(p_key text, p_slot text)
returns text
language sql
immutable
parallel safe
return case when p_key is null or p_slot = 'held' then 'ready' else 'pending' end;

-- notify_released: notify workers or the promoter of released tasks, and write events.
--
-- Workers are notified of ready tasks, the promoter of tasks that wait only for their time. Without
-- p_what the caller writes the events.
--
-- Concurrency: the rows are those of the caller's own update.
create or replace function treadle.notify_released(p_rows tid[], p_what text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_queues text[];
  v_due_at timestamptz;
  v_keys   text[];
begin
  select
    array_agg(distinct tasks.queue) filter (where tasks.status = 'ready'),
    min(tasks.run_at) filter (
      where tasks.status = 'pending' and tasks.blocked_count = 0 and tasks.slot is null
    ),
    array_agg(distinct tasks.concurrency_key) filter (where tasks.slot = 'waiting')
  into v_queues, v_due_at, v_keys
  from treadle.tasks
  where tasks.ctid = any (p_rows);

  perform treadle.notify_workers(v_queues);
  perform treadle.notify_promoter(v_due_at);
  perform treadle.request_slots(v_keys) where v_keys is not null;
  perform treadle.audit_tasks(p_rows, p_what, null) where p_what is not null;
end;
$$;

-- ready_rows: make some waiting tasks claimable and send notifications.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks.
create or replace function treadle.ready_rows(p_rows tid[])
returns setof uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_rows tid[];
  v_ids  uuid[];
begin
  with moved as (
    update treadle.tasks
    set
      status = treadle.entry_status(tasks.concurrency_key, tasks.slot),
      slot = treadle.entry_slot(tasks.concurrency_key, tasks.slot),
      retry_at = null
    where tasks.ctid = any (p_rows)
    returning tasks.ctid, tasks.id
  )

  select array_agg(moved.ctid), array_agg(moved.id) into v_rows, v_ids from moved;
  perform treadle.notify_released(v_rows, 'readied');
  return query select moved.id from unnest(v_ids) as moved (id);
end;
$$;
