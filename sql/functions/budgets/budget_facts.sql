-- budget_facts: what an event or a question says of a budget.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.budget_facts(p_budget treadle.budgets)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'budget_id', p_budget.id, 'scope', p_budget.scope, 'key', p_budget.scope_key,
    'period', p_budget.period, 'limit_usd', p_budget.limit_usd,
    'spent_usd', p_budget.spent_usd, 'reserved_usd', p_budget.reserved_usd
  )
$$;

comment on function treadle.budget_facts(treadle.budgets) is
'Internal: a budget as json.';

revoke all on function treadle.budget_facts(treadle.budgets) from public;
