-- request_slots: request that the slots of some concurrency keys be assigned to waiting tasks.
--
-- Concurrency: only inserts; no key is locked, so that a long transaction blocks no other session.

-- is_counted: return whether the end of a claim may have to release a slot or a reservation.
create or replace function treadle.is_counted(p_task treadle.tasks)
returns boolean
language sql
immutable
parallel safe
return p_task.budgeted or p_task.concurrency_key is not null;

create or replace function treadle.request_slots(p_keys text[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_queues text[];
begin
  if p_keys is null then
    return;
  end if;
  -- It does not check whether a task waits: one may arrive before this commits.
  insert into treadle.admissions (kind, key)
  select distinct 'slot', wanted.key from unnest(p_keys) as wanted (key);

  -- Any of their queues: a worker that claims there assigns the slot to the best task and notifies
  -- its queue.
  select array_agg(distinct next.queue)
  into v_queues
  from (select distinct given.key from unnest(p_keys) as given (key)) as wanted
  cross join lateral (
    select tasks.queue
    from treadle.tasks
    where tasks.concurrency_key = wanted.key and tasks.slot = 'waiting'
    limit 1
  ) as next;
  if v_queues is not null then
    perform treadle.notify_workers(v_queues);
    perform treadle.notify_promoter(treadle.clock());
  end if;
end;
$$;

-- release_resources: release the slots and reservations of claims that have ended.
--
-- No slot is locked here: the next claim or the promoter decides which task gets it.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  budgets, by id, after tasks and dags.
create or replace function treadle.release_resources(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if p_ids is null then
    return;
  end if;
  perform treadle.request_slots(array_agg(distinct tasks.concurrency_key))
  from treadle.tasks
  where tasks.id = any (p_ids) and tasks.concurrency_key is not null
  having count(*) > 0;
  perform treadle.release_reservations(p_ids)
  from treadle.tasks
  where tasks.id = any (p_ids) and tasks.budgeted
  having count(*) > 0;
end;
$$;
