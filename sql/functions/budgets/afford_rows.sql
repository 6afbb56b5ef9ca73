-- afford_rows: the tasks that the budgets have room for, in the order given; others are parked.
--
-- What only the budget of the agent refuses is left to other agents.
--
-- Concurrency: the budgets are locked, then read: only who holds one takes of it. Without p_wait
--              those that others hold are passed over, with their tasks.
-- Lock order:  budgets, by id; after tasks, which the caller holds.
-- Raises:      nothing.

create or replace function treadle.afford_rows(
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
      picked.place, treadle.money_needed(tasks) as need,
      array(
        select array_position(v_ids, drawn.id)
        from unnest(treadle.budgets_of(tasks, p_agent)) as drawn (id)
      ) as spots
    from unnest(p_rows) with ordinality as picked (place, at)
    inner join treadle.tasks on picked.place = tasks.ctid
    order by picked.at
  loop
    -- One that is in other hands now: this task is left for later.
    continue when array_position(v_task.spots, null) is not null;
    select
      min(v_ids[full_at.spot]) filter (where not v_own[full_at.spot]),
      coalesce(bool_or(v_own[full_at.spot]), false)
    into v_none, v_agent
    from unnest(v_task.spots) as full_at (spot)
    where not treadle.has_room(v_left[full_at.spot], v_task.need);
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
    perform treadle.sweep_lanes(v_lanes, v_full, p_now) where v_fits = '{}';
  end if;
  return v_fits;
end;
$$;

comment on function treadle.afford_rows(tid[], text, timestamptz, boolean) is
'Internal: the tasks that the budgets have room for; the others are parked.';

revoke all on function treadle.afford_rows(tid[], text, timestamptz, boolean) from public;
