-- sweep_lanes: park what else at the head of some lanes the same budgets have no room for.
--
-- Done when a claim found nothing but such tasks: ten thousand of one DAG at the head of a lane
-- would keep what stands behind them waiting, a handful with each claim.
--
-- Concurrency: the caller holds the budgets; tasks that others hold are passed over.
-- Lock order:  tasks (never waited for).
-- Raises:      nothing.

create or replace function treadle.sweep_lanes(
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
        treadle.money_needed(tasks) as need
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
        and not treadle.has_room(money.usd, heads.need)
    group by heads.place
  )

  select array_agg(refused.place), array_agg(refused.budget_id) into v_rows, v_full from refused;
  perform treadle.park_rows(v_rows, v_full) where v_rows is not null;
end;
$$;

comment on function treadle.sweep_lanes(integer[], bigint[], timestamptz) is
'Internal: parks up to a thousand tasks of each lane that budgets have no room for.';

revoke all on function treadle.sweep_lanes(integer[], bigint[], timestamptz) from public;
