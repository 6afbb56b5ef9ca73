-- hopeless_tasks: parked tasks that their budget could not pay even if nothing were reserved.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.hopeless_tasks(bigint[], text, timestamptz, integer) is
'Internal: what a budget that ran out has to ask about, or to fail.';

revoke all on function treadle.hopeless_tasks(bigint[], text, timestamptz, integer) from public;
