-- find_budget: the budget of a scope and period, locked; empty when there is none.
--
-- Concurrency: waits for who holds it, then begins its new period where that is due.
-- Lock order:  budgets.
-- Raises:      nothing.

create or replace function treadle.find_budget(p_scope text, p_key text, p_period text)
returns treadle.budgets
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_budget treadle.budgets;
begin
  select budgets.* into v_budget
  from treadle.budgets
  where
    budgets.scope = p_scope and budgets.scope_key = p_key
    and budgets.period is not distinct from p_period
  for no key update;
  perform treadle.roll_budgets(array[v_budget.id], treadle.clock()) where v_budget.id is not null;
  select budgets.* into v_budget from treadle.budgets where budgets.id = v_budget.id;
  return v_budget;
end;
$$;

comment on function treadle.find_budget(text, text, text) is
'Internal: locks a budget by what it is for.';

revoke all on function treadle.find_budget(text, text, text) from public;
