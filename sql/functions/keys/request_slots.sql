-- request_slots: say that tasks of some concurrency keys may be able to go on.
--
-- Concurrency: appends; no row of a key is locked, so that nobody waits for a long transaction.

-- is_counted: whether a slot or money may have to be given back when a claim of a task ends.
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
  -- Whether one waits is not asked: it may be there before this commits.
  insert into treadle.admissions (kind, key)
  select distinct 'slot', wanted.key from unnest(p_keys) as wanted (key);

  -- Any of their queues: who claims there gives the slot to the best, and wakes its queue.
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
    perform treadle.wake_queues(v_queues);
    perform treadle.wake_promoter(treadle.clock());
  end if;
end;
$$;

-- free_tasks: claims are over: their slots and what they had reserved can go to others.
--
-- Nothing of a slot is locked here: who claims next, or the promoter, looks who can have it.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  budgets, by id, after tasks and dags.
create or replace function treadle.free_tasks(p_ids uuid[])
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
