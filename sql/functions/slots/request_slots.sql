-- request_slots: say that tasks of some concurrency keys may be able to go on.
--
-- Concurrency: appends; no row of a key is locked, so that nobody waits for a long transaction.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.request_slots(text[]) is
'Internal: asks who claims next to look at the tasks that wait for a slot of these keys.';

revoke all on function treadle.request_slots(text[]) from public;
