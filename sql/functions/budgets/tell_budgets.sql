-- tell_budgets: events of budgets that were just written: four fifths spent, all spent.
--
-- Concurrency: the caller holds the budgets.
-- Lock order:  budgets; appends to events.
-- Raises:      nothing.

create or replace function treadle.tell_budgets(
  p_ids   bigint[],
  p_task  uuid,
  p_usd   numeric,
  p_now   timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  insert into treadle.events (at, kind, task_id, data)
  select p_now, 'budget.' || news.kind, p_task, treadle.budget_facts(budgets)
  from treadle.budgets
  cross join lateral (
    select 'warned' as kind
    where budgets.warned_at is null and budgets.spent_usd >= 0.8 * budgets.limit_usd
    union all
    select 'exhausted'
    where
      budgets.spent_usd >= budgets.limit_usd
      and budgets.spent_usd - p_usd < budgets.limit_usd
  ) as news
  where budgets.id = any (p_ids);

  update treadle.budgets
  set warned_at = p_now
  where
    budgets.id = any (p_ids) and budgets.warned_at is null
    and budgets.spent_usd >= 0.8 * budgets.limit_usd;
end;
$$;

comment on function treadle.tell_budgets(bigint[], uuid, numeric, timestamptz) is
'Internal: says that a budget is nearly or wholly spent, each once.';

revoke all on function treadle.tell_budgets(bigint[], uuid, numeric, timestamptz) from public;
