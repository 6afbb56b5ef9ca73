-- admit_slots: give the free slots of a concurrency key to the best tasks that wait for one.
--
-- Who has the row of the key takes all requests for it, so they are read once and in their order;
-- then the slots are counted. What was asked for later has a request of its own.
--
-- Concurrency: a key that another session has in hand is left alone, with its requests. Only who
--              has it gives slots away. Where a task is locked by others, it is asked for again.
-- Lock order:  concurrency_keys (never waited for), tasks (never waited for).
-- Raises:      nothing.

create or replace function treadle.admit_slots(p_key text)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_wanted integer;
  v_free   integer;
  v_rows   tid[];
begin
  if not treadle.hold_key(p_key) then
    return 0;
  end if;
  with taken as (
    delete from treadle.admissions
    where admissions.kind = 'slot' and admissions.key = p_key
    returning admissions.id, admissions.max
  )

  select (array_agg(taken.max order by taken.id desc) filter (where taken.max is not null))[1]
  into v_wanted
  from taken;

  -- Written, not only locked: under REPEATABLE READ a count from before must not be trusted.
  -- Nobody but an operator ends a hold.
  update treadle.concurrency_keys
  set
    touched = concurrency_keys.touched + 1,
    max = case
      when concurrency_keys.max = 0 then 0 else coalesce(v_wanted, concurrency_keys.max)
    end
  where concurrency_keys.key = p_key
  returning concurrency_keys.max into v_free;

  select v_free - count(*)
  into v_free
  from treadle.tasks
  where tasks.concurrency_key = p_key and tasks.slot = 'held';
  if v_free <= 0 then
    return 0;
  end if;

  v_rows := treadle.pick_waiting(p_key, v_free);
  with moved as (
    update treadle.tasks
    set status = 'ready', slot = 'held'
    where tasks.ctid = any (v_rows)
    returning tasks.ctid
  )

  select coalesce(array_agg(moved.ctid), '{}') into v_rows from moved;
  perform treadle.announce_rows(v_rows, 'ready') where v_rows <> '{}';
  insert into treadle.admissions (kind, key)
  select 'slot', p_key
  where cardinality(v_rows) < v_free and exists (
    select from treadle.tasks where tasks.concurrency_key = p_key and tasks.slot = 'waiting'
  );
  return cardinality(v_rows);
end;
$$;

comment on function treadle.admit_slots(text) is
'Internal: makes the best waiting tasks of a key ready, as many as it has slots free.';

revoke all on function treadle.admit_slots(text) from public;
