-- budget_rows: lock budgets, start their new periods and release reservations.

-- lock_budgets: lock budgets in the global order and return those that were locked.
--
-- Concurrency: with p_wait it waits for locks; otherwise it skips locked rows.
-- Lock order:  budgets, by id.
create or replace function treadle.lock_budgets(p_ids bigint[], p_wait boolean)
returns bigint[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if p_wait then
    return array(
      select budgets.id
      from treadle.budgets
      where budgets.id = any (p_ids)
      order by budgets.id
      for no key update
    );
  end if;
  return array(
    select budgets.id
    from treadle.budgets
    where budgets.id = any (p_ids)
    order by budgets.id
    for no key update skip locked
  );
end;
$$;

-- request_budgets: request a review of the tasks that are parked at some budgets.
--
-- Concurrency: the caller has locked the budgets. A session that parks a task also locks its
-- budget, so no parked task is missed. Only inserts rows.
create or replace function treadle.request_budgets(p_ids bigint[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_waiting bigint[];
  v_queues  text[];
begin
  select array_agg(distinct asked.id), array_agg(distinct next.queue)
  into v_waiting, v_queues
  from unnest(p_ids) as asked (id)
  cross join lateral (
    select tasks.queue
    from treadle.tasks
    where tasks.budget_id = asked.id
    order by tasks.rank
    limit 1
  ) as next;
  if v_waiting is null then
    -- A task that was running may have asked for money.
    perform treadle.notify_promoter(treadle.clock())
    where exists (
      select from treadle.waits where waits.budget_id = any (p_ids) and waits.status = 'open'
    );
    return;
  end if;

  insert into treadle.admissions (kind, key)
  select 'budget', waiting.id::text from unnest(v_waiting) as waiting (id);
  perform treadle.notify_workers(v_queues);
  perform treadle.notify_promoter(treadle.clock());
end;
$$;

-- roll_budgets: start a new period for budgets whose period has ended.
--
-- Reservations stay, since their tasks go on. A clock that moves backwards does not reopen an old
-- period.
--
-- Concurrency: the caller has locked the budgets.
-- Lock order:  budgets.
create or replace function treadle.roll_budgets(p_ids bigint[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_rolled bigint[];
begin
  with rolled as (
    update treadle.budgets
    set
      spent_usd = 0,
      period_start = treadle.period_start(budgets.period, p_now),
      warned_at = null
    where
      budgets.id = any (p_ids)
      and budgets.period_start < treadle.period_start(budgets.period, p_now)
    returning budgets.id
  )

  select array_agg(rolled.id) into v_rolled from rolled;
  perform treadle.request_budgets(v_rolled) where v_rolled is not null;
end;
$$;

-- release_reservations: release what tasks had reserved and did not spend.
--
-- Concurrency: the caller has locked the tasks, so no session reserves for them in the meantime.
-- Lock order:  budgets, by id, after tasks; reservations.
create or replace function treadle.release_reservations(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_ids bigint[] := array(
    select distinct reservations.budget_id
    from treadle.reservations
    where reservations.task_id = any (p_ids)
  );
begin
  if v_ids = '{}' then
    return;
  end if;
  perform treadle.lock_budgets(v_ids, true);
  with gone as (
    delete from treadle.reservations
    where reservations.task_id = any (p_ids)
    returning reservations.budget_id, reservations.usd
  ),

  freed as (
    select gone.budget_id, sum(gone.usd) as usd from gone group by gone.budget_id
  )

  update treadle.budgets
  set reserved_usd = budgets.reserved_usd - freed.usd
  from freed
  where budgets.id = freed.budget_id;
  perform treadle.request_budgets(v_ids);
end;
$$;
