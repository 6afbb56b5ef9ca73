-- review_budgets: look at the budgets that tasks wait for: go on, ask, or give up.
--
-- A task that cannot be moved does not stop the others: it is reported in problem, and left out
-- when its id is passed in p_skip.
--
-- Concurrency: first what fails, with locks that are waited for briefly and no budget held; then
--              the rest, which skips what others hold; the next look comes soon.
-- Lock order:  tasks, dags, then the history; budgets, tasks (never waited for), waits.

-- unpark_rows: put parked tasks back, where they wait for nothing else now.
--
-- Concurrency: the caller holds the tasks.
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
  perform treadle.announce_rows(v_rows, 'ready');
  return coalesce(v_rows, '{}');
end;
$$;

-- hopeless_tasks: parked tasks that their budget could not pay even if nothing were reserved.
create or replace function treadle.hopeless_tasks(
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
    -- Once for each budget, whatever is parked there.
    select
      budgets.id, budgets as budget, budgets.on_exhausted,
      treadle.budget_left(budgets, p_now) + budgets.reserved_usd as usd
    from treadle.budgets
    where budgets.id = given.id
    offset 0
  ) as money
  cross join lateral (
    select tasks.id, treadle.money_needed(tasks) as need
    from treadle.tasks
    where
      tasks.budget_id = money.id
      and coalesce(tasks.on_budget, money.on_exhausted) = p_policy
      and not treadle.has_room(money.usd, treadle.money_needed(tasks))
    order by tasks.rank, tasks.id
    limit p_limit
  ) as parked
$$;

-- parked_budgets: the budgets that tasks are parked at or that a question is open about.
--
-- Jumps from one to the next in the index, however many tasks are parked.
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
-- Concurrency: the tasks are locked in id order, with what falls with them, then judged again. No
--              budget is held.
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
  perform treadle.lock_fallout(p_ids, false);
  perform treadle.lock_tasks(p_ids);
  select array_agg(still.id), array_agg(still.reason), array_agg(distinct still.budget_id)
  into v_ids, v_reasons, v_budgets
  from treadle.hopeless_tasks(
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
  perform treadle.bury_tasks(v_ids, v_reasons, null, p_now);
  insert into treadle.events (at, kind, data)
  select p_now, 'budget.exhausted', treadle.budget_facts(budgets)
  from treadle.budgets
  where budgets.id = any (v_budgets);
  return v_ids;
end;
$$;

-- admit_budget: let parked tasks go that a budget has room for, best first.
--
-- They are looked at again when they are claimed: this never spends, and locks no budget.
--
-- Concurrency: tasks that others hold are passed over; review_budgets finds those later.
-- Lock order:  tasks (never waited for).
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
    select tasks.ctid as place, treadle.money_needed(tasks) as need
    from treadle.tasks
    where
      tasks.budget_id = p_budget and tasks.status = 'pending'
      and treadle.has_room(coalesce(v_left, 'Infinity'), treadle.money_needed(tasks))
    order by tasks.rank, tasks.id
    limit c_many
    for update skip locked
  loop
    v_seen := v_seen + 1;
    -- A budget that is gone has nothing to say any more.
    if v_left is null or treadle.has_room(v_left, v_task.need) then
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

-- review_budget: let those go on that a budget has room for; ask where it has run out.
--
-- One question is open about a budget at a time, on the best task that it cannot pay.
--
-- Concurrency: the budget is written, so that of two sessions one asks; one that is held by
--              others is left to the next round, and so are tasks.
-- Lock order:  budgets (never waited for), tasks (never waited for), waits.
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
  perform treadle.close_questions(p_budget, null);
  perform treadle.admit_budget(p_budget);
  update treadle.budgets set on_exhausted = budgets.on_exhausted where budgets.id = any (v_held);
  if not found or exists (
    select from treadle.waits where waits.budget_id = p_budget and waits.status = 'open'
  ) then
    return null;
  end if;

  for v_next in
    select hopeless.id, hopeless.need, hopeless.reason
    from treadle.hopeless_tasks(array[p_budget], 'ask', p_now, 10) as hopeless
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

  perform treadle.ask_for_money(v_task, p_budget, v_next.need, v_next.reason, true);
  update treadle.tasks set status = 'blocked' where tasks.id = v_task.id
  returning tasks.ctid into v_row;
  perform treadle.audit_tasks(array[v_row], 'blocked', null);
  insert into treadle.events (at, kind, task_id, data)
  select p_now, 'budget.exhausted', v_task.id, treadle.budget_facts(budgets)
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
-- Well below deadlock_timeout: who holds what it wants is not made to give way.
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
  perform treadle.keep_durable();
  v_ids := array(
    select hopeless.id
    from treadle.hopeless_tasks(
      v_budgets, 'fail', v_now, p_limit + cardinality(p_skip)
    ) as hopeless
    where hopeless.id <> all (p_skip)
    limit p_limit
  );
  begin
    return query
    select buried.id, 'dead_lettered', null
    from unnest(treadle.fail_parked(v_ids, v_now, 10000)) as buried (id)
    where v_ids <> '{}';
  exception when others then
    -- One of them is bad: each on its own, so that the rest go through.
    for v_at in 1..cardinality(v_ids) loop
      begin
        return query
        select buried.id, 'dead_lettered', null
        from unnest(treadle.fail_parked(v_ids[v_at:v_at], v_now, 10000)) as buried (id);
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
      -- A row that is being written is waited for even where locked ones are skipped.
      continue;
    end;
    return query select v_asked, 'asked', null where v_asked is not null;
  end loop;
end;
$$;

comment on function treadle.review_budgets(integer, uuid[]) is
'Go on, ask or give up where budgets had no room; says of each task that moved what it does now.';

grant execute on function treadle.review_budgets(integer, uuid[]) to treadle_worker;
