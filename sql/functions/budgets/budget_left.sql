-- budget_left: what a budget has left that is neither spent nor reserved, at a moment.
--
-- A period that is over counts as rolled over, also where nobody has written that yet.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.budget_left(p_budget treadle.budgets, p_now timestamptz)
returns numeric
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    p_budget.limit_usd - p_budget.reserved_usd - case
      when p_budget.period_start < treadle.period_start(p_budget.period, p_now) then 0
      else p_budget.spent_usd
    end
$$;

comment on function treadle.budget_left(treadle.budgets, timestamptz) is
'Internal: limit less spent and reserved; below 0 after an overrun.';

revoke all on function treadle.budget_left(treadle.budgets, timestamptz) from public;
