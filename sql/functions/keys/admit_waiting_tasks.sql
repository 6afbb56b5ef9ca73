-- admit_waiting_tasks: make tasks claimable that waited for a slot or a budget which now has room.
--
-- Called by claims and by the promoter, for up to p_limit keys and as many budgets. Keys that
-- another session has locked are left to it or to the next call; their requests stay.
--
-- Concurrency: skips locked requests, keys and tasks.
-- Lock order:  concurrency_keys, budgets, tasks (skips locked rows).

-- make_key: insert the row of a concurrency key; false if another session has inserted it.
--
-- The uncommitted row is the lock. An advisory lock is not used, because any login could take it
-- and block the key.
--
-- Concurrency: waits at most 1 ms, the shortest lock_timeout, for a session that is inserting the
-- same key. The exception block costs one subtransaction per new key.
-- Lock order:  concurrency_keys.
create or replace function treadle.make_key(p_key text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set lock_timeout = '1ms'
as $$
begin
  insert into treadle.concurrency_keys (key) values (p_key) on conflict (key) do nothing;
  return found;
exception
  when lock_not_available then
    return false;
end;
$$;

-- lock_key: lock the row of a concurrency key, and create it on first use; false if it is locked.
--
-- Producers do not write this row, so that a long transaction of a producer blocks no other
-- session.
--
-- Concurrency: skips a row that another session has locked; make_key bounds the wait for a row that
--              another session is inserting.
-- Lock order:  concurrency_keys.
create or replace function treadle.lock_key(p_key text)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform concurrency_keys.key
  from treadle.concurrency_keys
  where concurrency_keys.key = p_key
  for update skip locked;
  if found then
    return true;
  end if;
  if exists (select from treadle.concurrency_keys where concurrency_keys.key = p_key) then
    return false;
  end if;
  return treadle.make_key(p_key);
end;
$$;

-- pick_waiting: lock the best tasks that wait for a slot of a key, in order of effective priority.
--
-- The first tasks of each lane are found by index; then their ranks are made comparable. A few more
-- than needed are read, since others may have locked some.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks.
create or replace function treadle.pick_waiting(p_key text, p_limit integer)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
declare
  v_ms    bigint := treadle.rank_ms(treadle.clock());
  v_lanes integer[];
  v_ids   uuid[];
begin
  with recursive found (lane_id) as (
    -- Not min(): if few rows are estimated, the planner would read all of them.
    (
      select tasks.lane_id
      from treadle.tasks
      where tasks.concurrency_key = p_key and tasks.slot = 'waiting'
      order by tasks.lane_id
      limit 1
    )
    union all
    select (
      select tasks.lane_id
      from treadle.tasks
      where
        tasks.concurrency_key = p_key and tasks.slot = 'waiting' and tasks.lane_id > found.lane_id
      order by tasks.lane_id
      limit 1
    )
    from found
    where found.lane_id is not null
  )

  select array_agg(found.lane_id) into v_lanes from found where found.lane_id is not null;

  v_ids := array(
    select head.id
    from treadle.lanes
    cross join lateral (
      select tasks.id, tasks.rank
      from treadle.tasks
      where
        tasks.concurrency_key = p_key and tasks.slot = 'waiting' and tasks.lane_id = lanes.id
      order by tasks.rank, tasks.id
      limit p_limit + 20
    ) as head
    where lanes.id = any (v_lanes)
    order by head.rank - treadle.ageing_offset_at(lanes.ageing, v_ms), head.id
    limit p_limit + 20
  );

  return array(
    select tasks.ctid
    from treadle.tasks
    inner join unnest(v_ids) with ordinality as best (id, at) on tasks.id = best.id
    -- This condition must not use an index, which would read all waiting tasks.
    where coalesce(tasks.slot, '') = 'waiting'
    order by best.at
    limit p_limit
    for update of tasks skip locked
  );
end;
$$;

-- admit_slots: assign the free slots of a concurrency key to the best waiting tasks.
--
-- The session that holds the row of the key takes all its requests, so they are read once and in
-- order; then the slots are counted. Later requests have their own rows.
--
-- Concurrency: a locked key is skipped and keeps its requests. Only the session that holds the key
-- assigns slots. If a task is locked, its slot is requested again.
-- Lock order:  concurrency_keys (skips locked rows), tasks (skips locked rows).
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
  if not treadle.lock_key(p_key) then
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

  -- Updated, not only locked: under REPEATABLE READ an older count must not be used. Only an
  -- operator ends a hold.
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
  perform treadle.notify_released(v_rows, 'readied') where v_rows <> '{}';
  insert into treadle.admissions (kind, key)
  select 'slot', p_key
  where cardinality(v_rows) < v_free and exists (
    select from treadle.tasks where tasks.concurrency_key = p_key and tasks.slot = 'waiting'
  );
  return cardinality(v_rows);
end;
$$;

-- requested_keys: return concurrency keys or budgets with requests, the oldest request first.
--
-- The others follow by name, in rotation, so that many requests for one key do not hide the rest
-- and no key is always last.
create or replace function treadle.requested_keys(p_kind text, p_limit integer)
returns text[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  v_first text := (
    select admissions.key from treadle.admissions
    where admissions.kind = p_kind
    order by admissions.id
    limit 1
  );
  v_key   text := v_first;
  v_keys  text[] := '{}';
begin
  while v_key is not null and cardinality(v_keys) < p_limit loop
    v_keys := v_keys || v_key;
    v_key := coalesce(
      (
        select min(admissions.key) from treadle.admissions
        where admissions.kind = p_kind and admissions.key > v_key
      ),
      (
        select min(admissions.key) from treadle.admissions
        where admissions.kind = p_kind and admissions.key <= v_key
      )
    );
    exit when v_key = v_first or v_key = any (v_keys);
  end loop;
  return v_keys;
end;
$$;

create or replace function treadle.admit_waiting_tasks(p_limit integer default 100)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key   text;
  v_ids   bigint[];
  v_moved integer := 0;
begin
  perform treadle.ensure_durable();
  foreach v_key in array treadle.requested_keys('slot', p_limit) loop
    v_moved := v_moved + treadle.admit_slots(v_key);
  end loop;

  foreach v_key in array treadle.requested_keys('budget', p_limit) loop
    v_ids := array(
      select admissions.id
      from treadle.admissions
      where admissions.kind = 'budget' and admissions.key = v_key
      for update skip locked
    );
    continue when v_ids = '{}';
    v_moved := v_moved + treadle.admit_budget(v_key::bigint);
    delete from treadle.admissions where admissions.id = any (v_ids);
  end loop;
  return v_moved;
end;
$$;

comment on function treadle.admit_waiting_tasks(integer) is
'Make tasks claimable if their concurrency key or budget has room; returns how many.';

grant execute on function treadle.admit_waiting_tasks(integer) to treadle_operator, treadle_worker;
