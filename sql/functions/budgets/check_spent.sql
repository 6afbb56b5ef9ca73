-- check_spent: refuse a limit below what a budget has spent and reserved.
--
-- Concurrency: the caller holds the budget.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_spent(p_budget treadle.budgets, p_limit numeric)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit < p_budget.spent_usd + p_budget.reserved_usd then
    perform treadle.refuse(
      format(
        '%s cannot be %s: %s is spent and %s reserved', treadle.budget_name(p_budget),
        treadle.dollars(p_limit), treadle.dollars(p_budget.spent_usd),
        treadle.dollars(p_budget.reserved_usd)
      ),
      jsonb_build_object('argument', 'limit_usd') || treadle.budget_facts(p_budget),
      format('The least is %s now.', treadle.dollars(p_budget.spent_usd + p_budget.reserved_usd))
    );
  end if;
end;
$$;

comment on function treadle.check_spent(treadle.budgets, numeric) is
'Internal: refuses a limit that is passed already.';

revoke all on function treadle.check_spent(treadle.budgets, numeric) from public;
