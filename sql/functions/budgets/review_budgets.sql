-- review_budgets: review budgets with waiting tasks: release tasks, ask people, or give tasks up.
--
-- A task that cannot be moved does not stop the others. It is reported in problem; pass its id in
-- p_skip to leave it out.
--
-- Concurrency: first fails tasks, with short lock waits and no budget locked; then handles the rest
-- and skips locked rows. The next call comes soon.
-- Lock order:  tasks, dags, then the history; budgets, tasks (skips locked rows), waits.

-- unpark_rows: make parked tasks claimable if they wait for nothing else.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  tasks.
create or replace function treadle.unpark_rows(p_rows tid[], p_now timestamptz)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_rows tid[];
begin
  with freed as (
    update treadle.tasks
    set
      budget_id = null,
      status = case
        when tasks.blocked_count > 0 or tasks.run_at > p_now then 'pending'
        else treadle.entry_status(tasks.concurrency_key, tasks.slot)
      end,
      slot = case
        when tasks.blocked_count = 0 and coalesce(tasks.run_at <= p_now, true)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
      end
    where tasks.ctid = any (p_rows)
    returning tasks.ctid
  )

  select array_agg(freed.ctid) into v_rows from freed;
  perform treadle.notify_released(v_rows, 'readied');
  return coalesce(v_rows, '{}');
end;
$$;

-- unaffordable_tasks: find parked tasks that their budget could not pay even with nothing reserved.
create or replace function treadle.unaffordable_tasks(
  p_budgets  bigint[],
  p_policy   text,
  p_now      timestamptz,
  p_limit    integer
)
returns table (id uuid, budget_id bigint, need numeric, reason text)
language sql
stable
rows 100
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    parked.id,
    money.id,
    parked.need,
    treadle.need_text(money.budget, parked.need)
  from unnest(p_budgets) as given (id)
  cross join lateral (
    -- Computed once per budget, however many tasks are parked there.
    select
      budgets.id, budgets as budget, budgets.on_exhausted,
      treadle.budget_left(budgets, p_now) + budgets.reserved_usd as usd
    from treadle.budgets
    where budgets.id = given.id
    offset 0
  ) as money
  cross join lateral (
    select tasks.id, treadle.remaining_cost(tasks) as need
    from treadle.tasks
    where
      tasks.budget_id = money.id
      and coalesce(
        case
          when tasks.has_options then (
            select task_options.on_budget
            from treadle.task_options
            where task_options.task_id = tasks.id
          )
        end,
        money.on_exhausted
      ) = p_policy
      and not treadle.fits_budget(money.usd, treadle.remaining_cost(tasks))
    order by tasks.rank, tasks.id
    limit p_limit
  ) as parked
$$;

-- parked_budgets: find the budgets that have parked tasks or an open question.
--
-- Uses an index skip scan, so the number of parked tasks does not matter.
create or replace function treadle.parked_budgets()
returns bigint[]
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  with recursive parked as (
    (
      select tasks.budget_id as id
      from treadle.tasks
      where tasks.budget_id is not null
      order by tasks.budget_id
      limit 1
    )
    union all
    select (
      select tasks.budget_id
      from treadle.tasks
      where tasks.budget_id > parked.id
      order by tasks.budget_id
      limit 1
    )
    from parked
    where parked.id is not null
  )

  select array(
    select parked.id from parked where parked.id is not null
    union
    select waits.budget_id from treadle.waits
    where waits.status = 'open' and waits.budget_id is not null
    order by 1
  )
$$;

-- fail_parked: give up parked tasks that their budget cannot pay and whose policy is fail.
--
-- Concurrency: locks the tasks and their dependents in id order, then checks them again. No budget
-- is locked.
-- Lock order:  tasks, dags, then the history.
create or replace function treadle.fail_parked(
  p_ids    uuid[],
  p_now    timestamptz,
  p_limit  integer
)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids     uuid[];
  v_reasons text[];
  v_budgets bigint[];
begin
  perform treadle.lock_failure_cascade(p_ids, false);
  perform treadle.lock_tasks(p_ids);
  select array_agg(still.id), array_agg(still.reason), array_agg(distinct still.budget_id)
  into v_ids, v_reasons, v_budgets
  from treadle.unaffordable_tasks(
    array(
      select distinct tasks.budget_id from treadle.tasks
      where tasks.id = any (p_ids) and tasks.budget_id is not null
    ),
    'fail', p_now, p_limit
  ) as still
  where still.id = any (p_ids);
  if v_ids is null then
    return '{}';
  end if;
  perform treadle.dead_letter_unfunded(v_ids, v_reasons, null, p_now);
  insert into treadle.events (at, kind, data)
  select p_now, 'budget.exhausted', treadle.budget_json(budgets)
  from treadle.budgets
  where budgets.id = any (v_budgets);
  return v_ids;
end;
$$;

-- admit_budget: release parked tasks that a budget has room for, best first.
--
-- The claim checks them again: this function spends nothing and locks no budget.
--
-- Concurrency: skips locked tasks; review_budgets finds them later.
-- Lock order:  tasks (skips locked rows).
create or replace function treadle.admit_budget(p_budget bigint)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  c_many constant integer := 1000;
  v_now  timestamptz := treadle.clock();
  v_left numeric;
  v_task record;
  v_seen integer := 0;
  v_rows tid[] := '{}';
begin
  select treadle.budget_left(budgets, v_now) into v_left
  from treadle.budgets
  where budgets.id = p_budget;

  for v_task in
    select tasks.ctid as place, treadle.remaining_cost(tasks) as need
    from treadle.tasks
    where
      tasks.budget_id = p_budget and tasks.status = 'pending'
      and treadle.fits_budget(coalesce(v_left, 'Infinity'), treadle.remaining_cost(tasks))
    order by tasks.rank, tasks.id
    limit c_many
    for update skip locked
  loop
    v_seen := v_seen + 1;
    -- A removed budget no longer limits anything.
    if v_left is null or treadle.fits_budget(v_left, v_task.need) then
      v_rows := v_rows || v_task.place;
      v_left := v_left - coalesce(v_task.need, 0);
    end if;
  end loop;
  if v_rows = '{}' then
    return 0;
  end if;

  v_rows := treadle.unpark_rows(v_rows, v_now);
  if v_seen = c_many then
    insert into treadle.admissions (kind, key) values ('budget', p_budget::text);
  end if;
  return cardinality(v_rows);
end;
$$;

-- review_budget: release the tasks that a budget has room for; ask if it is exhausted.
--
-- Only one question per budget is open at a time, for the best task that the budget cannot pay.
--
-- Concurrency: updates the budget row, so that only one of two sessions asks. Locked budgets and
-- tasks are left to the next round.
-- Lock order:  budgets (skips locked rows), tasks (skips locked rows), waits.
create or replace function treadle.review_budget(p_budget bigint, p_now timestamptz)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_held  bigint[] := treadle.lock_budgets(array[p_budget], false);
  v_next  record;
  v_task  treadle.tasks;
  v_row   tid;
begin
  perform treadle.roll_budgets(v_held, p_now);
  perform treadle.close_budget_waits(p_budget, null);
  perform treadle.admit_budget(p_budget);
  update treadle.budgets set on_exhausted = budgets.on_exhausted where budgets.id = any (v_held);
  if not found or exists (
    select from treadle.waits where waits.budget_id = p_budget and waits.status = 'open'
  ) then
    return null;
  end if;

  for v_next in
    select unaffordable.id, unaffordable.need, unaffordable.reason
    from treadle.unaffordable_tasks(array[p_budget], 'ask', p_now, 10) as unaffordable
  loop
    select tasks.* into v_task
    from treadle.tasks
    where tasks.id = v_next.id and tasks.status = 'pending' and tasks.budget_id = p_budget
    for no key update skip locked;
    exit when found;
  end loop;
  if v_task.id is null then
    return null;
  end if;

  perform treadle.open_budget_wait(v_task, p_budget, v_next.need, v_next.reason, true);
  update treadle.tasks set status = 'blocked' where tasks.id = v_task.id
  returning tasks.ctid into v_row;
  perform treadle.audit_tasks(array[v_row], 'blocked', null);
  insert into treadle.events (at, kind, task_id, data)
  select p_now, 'budget.exhausted', v_task.id, treadle.budget_json(budgets)
  from treadle.budgets
  where budgets.id = p_budget;
  return v_task.id;
end;
$$;

create or replace function treadle.review_budgets(
  p_limit  integer default 100,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, verdict text, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
-- Well below deadlock_timeout, so that the other session is not the one that is cancelled.
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := treadle.clock();
  v_budgets bigint[] := treadle.parked_budgets();
  v_ids     uuid[];
  v_asked   uuid;
begin
  if v_budgets = '{}' then
    return;
  end if;
  perform treadle.ensure_durable();
  v_ids := array(
    select unaffordable.id
    from treadle.unaffordable_tasks(
      v_budgets, 'fail', v_now, p_limit + cardinality(p_skip)
    ) as unaffordable
    where unaffordable.id <> all (p_skip)
    limit p_limit
  );
  begin
    return query
    select dead.id, 'dead_lettered', null
    from unnest(treadle.fail_parked(v_ids, v_now, 10000)) as dead (id)
    where v_ids <> '{}';
  exception when others then
    -- One of them failed: try each one separately, so that the others succeed.
    for v_at in 1..cardinality(v_ids) loop
      begin
        return query
        select dead.id, 'dead_lettered', null
        from unnest(treadle.fail_parked(v_ids[v_at:v_at], v_now, 10000)) as dead (id);
      exception
        when lock_not_available then
          perform set_config('lock_timeout', '10ms', true);
        when others then
          return query select v_ids[v_at], 'dead_lettered', sqlerrm;
      end;
    end loop;
  end;

  for v_at in 1..cardinality(v_budgets) loop
    begin
      v_asked := treadle.review_budget(v_budgets[v_at], v_now);
    exception when lock_not_available then
      -- A row that is being written is waited for even with SKIP LOCKED.
      continue;
    end;
    return query select v_asked, 'asked', null where v_asked is not null;
  end loop;
end;
$$;

comment on function treadle.review_budgets(integer, uuid[]) is
'Release, ask or give up tasks that wait for a budget; returns each task that moved and its state.';

grant execute on function treadle.review_budgets(integer, uuid[]) to treadle_worker;
