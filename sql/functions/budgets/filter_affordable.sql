-- filter_affordable: return the tasks that their budgets can pay, in the given order; park the
-- others.
--
-- A task that only the budget of this agent cannot pay is left to other agents.
--
-- Concurrency: locks the budgets before reading them; only the session that holds the lock reserves
-- from a budget. Without p_wait, budgets locked by others are skipped, and so are their tasks.
-- Lock order:  budgets, by id; after tasks, which the caller has locked.

-- park_rows: take tasks out of the claim path until their budget has room.
--
-- Concurrency: the caller has locked the tasks and the budgets.
-- Lock order:  tasks.
create or replace function treadle.park_rows(p_rows tid[], p_budgets bigint[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_rows tid[];
  v_keys text[];
begin
  with parked as (
    update treadle.tasks
    set status = 'pending', slot = null, budget_id = given.budget_id
    from unnest(p_rows, p_budgets) as given (place, budget_id)
    where tasks.ctid = given.place
    returning tasks.ctid, tasks.concurrency_key
  )

  select
    array_agg(parked.ctid),
    array_agg(distinct parked.concurrency_key) filter (where parked.concurrency_key is not null)
  into v_rows, v_keys
  from parked;
  perform treadle.audit_tasks(v_rows, 'parked', null);
  -- Other tasks may use the slots in the meantime.
  perform treadle.request_slots(v_keys) where v_keys is not null;
  perform treadle.notify_promoter(treadle.clock());
end;
$$;

-- park_lane_heads: park further tasks at the head of some lanes that the same budgets cannot pay.
--
-- Called when a claim found only such tasks. Otherwise ten thousand tasks of one DAG at the head of
-- a lane would delay the tasks behind them, since each claim parks only a few.
--
-- Concurrency: the caller has locked the budgets; locked tasks are skipped.
-- Lock order:  tasks (skips locked rows).
create or replace function treadle.park_lane_heads(
  p_lanes    integer[],
  p_budgets  bigint[],
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_rows tid[];
  v_full bigint[];
begin
  with money as materialized (
    select
      budgets.id, budgets.scope, budgets.scope_key, treadle.budget_left(budgets, p_now) as usd
    from treadle.budgets
    where budgets.id = any (p_budgets)
  ),

  heads as materialized (
    select head.*
    from unnest(p_lanes) as lanes (id)
    cross join lateral (
      select
        tasks.ctid as place, tasks.dag_id, tasks.project_id, tasks.type,
        treadle.remaining_cost(tasks) as need
      from treadle.tasks
      where tasks.lane_id = lanes.id and tasks.status = 'ready'
      order by tasks.rank, tasks.id
      limit 1000
      for update skip locked
    ) as head
  ),

  refused as (
    select heads.place, min(money.id) as budget_id
    from heads
    inner join money
      on
        money.scope_key = case money.scope
          when 'dag' then heads.dag_id::text
          when 'project' then heads.project_id::text
          when 'type' then heads.type
          else ''
        end
        and not treadle.fits_budget(money.usd, heads.need)
    group by heads.place
  )

  select array_agg(refused.place), array_agg(refused.budget_id) into v_rows, v_full from refused;
  perform treadle.park_rows(v_rows, v_full) where v_rows is not null;
end;
$$;

create or replace function treadle.filter_affordable(
  p_rows   tid[],
  p_agent  text,
  p_now    timestamptz,
  p_wait   boolean
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_ids    bigint[] := treadle.budgets_over(p_rows, p_agent);
  v_left   numeric[];
  v_own    boolean[];
  v_task   record;
  v_fits   tid[] := '{}';
  v_parked tid[] := '{}';
  v_full   bigint[] := '{}';
  v_lanes  integer[];
  v_none   bigint;
  v_agent  boolean;
begin
  if v_ids = '{}' then
    return p_rows;
  end if;
  v_ids := treadle.lock_budgets(v_ids, p_wait);
  perform treadle.roll_budgets(v_ids, p_now);
  select
    array_agg(budgets.id order by budgets.id),
    array_agg(treadle.budget_left(budgets, p_now) order by budgets.id),
    array_agg(budgets.scope = 'agent' order by budgets.id)
  into v_ids, v_left, v_own
  from treadle.budgets
  where budgets.id = any (v_ids);

  for v_task in
    select
      picked.place, treadle.remaining_cost(tasks) as need,
      array(
        select array_position(v_ids, drawn.id)
        from unnest(treadle.budgets_of(tasks, p_agent)) as drawn (id)
      ) as spots
    from unnest(p_rows) with ordinality as picked (place, at)
    inner join treadle.tasks on picked.place = tasks.ctid
    order by picked.at
  loop
    -- Another session has locked this budget, so the task is left for later.
    continue when array_position(v_task.spots, null) is not null;
    select
      min(v_ids[full_at.spot]) filter (where not v_own[full_at.spot]),
      coalesce(bool_or(v_own[full_at.spot]), false)
    into v_none, v_agent
    from unnest(v_task.spots) as full_at (spot)
    where not treadle.fits_budget(v_left[full_at.spot], v_task.need);
    if v_none is not null then
      v_parked := v_parked || v_task.place;
      v_full := v_full || v_none;
    elsif not v_agent then
      v_fits := v_fits || v_task.place;
      for v_at in 1..cardinality(v_task.spots) loop
        v_left[v_task.spots[v_at]] := v_left[v_task.spots[v_at]] - coalesce(v_task.need, 0);
      end loop;
    end if;
  end loop;
  if v_parked <> '{}' then
    v_lanes := array(
      select distinct tasks.lane_id from treadle.tasks where tasks.ctid = any (v_parked)
    );
    perform treadle.park_rows(v_parked, v_full);
    perform treadle.park_lane_heads(v_lanes, v_full, p_now) where v_fits = '{}';
  end if;
  return v_fits;
end;
$$;

-- reserve_rows: reserve the amounts that claimed tasks may spend.
--
-- Concurrency: filter_affordable has locked the budgets and found room. A budget created since then
-- is left out unless it also has room; it counts from the next claim.
-- Lock order:  budgets, after tasks; reservations.
create or replace function treadle.reserve_rows(p_rows tid[], p_agent text, p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_tasks uuid[];
  v_ids   bigint[];
  v_usd   numeric[];
begin
  if treadle.budgets_over(p_rows, p_agent) = '{}' then
    return;
  end if;
  select array_agg(tasks.id), array_agg(drawn.id), array_agg(treadle.remaining_cost(tasks))
  into v_tasks, v_ids, v_usd
  from treadle.tasks
  cross join lateral unnest(treadle.budgets_of(tasks, p_agent)) as drawn (id)
  where tasks.ctid = any (p_rows) and treadle.remaining_cost(tasks) > 0;
  if v_ids is null then
    return;
  end if;

  with wanted as (
    select given.id, sum(given.usd) as usd
    from unnest(v_ids, v_usd) as given (id, usd)
    group by given.id
  ),

  booked as (
    update treadle.budgets
    set reserved_usd = budgets.reserved_usd + wanted.usd
    from wanted
    where budgets.id = wanted.id and treadle.budget_left(budgets, p_now) >= wanted.usd
    returning budgets.id
  )

  insert into treadle.reservations (task_id, budget_id, usd)
  select given.task_id, given.id, given.usd
  from unnest(v_tasks, v_ids, v_usd) as given (task_id, id, usd)
  inner join booked on given.id = booked.id
  on conflict (task_id, budget_id) do update set usd = reservations.usd + excluded.usd;
end;
$$;
