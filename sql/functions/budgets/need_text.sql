-- need_text: what a budget has, and what a task needs of it, in a sentence.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.need_text(p_budget treadle.budgets, p_needed numeric)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    '%s of %s is spent of %s%s; the task needs %s',
    treadle.dollars(p_budget.spent_usd), treadle.dollars(p_budget.limit_usd),
    treadle.budget_name(p_budget),
    case
      when p_budget.reserved_usd > 0
        then format(', %s is reserved', treadle.dollars(p_budget.reserved_usd))
      else ''
    end,
    coalesce(treadle.dollars(p_needed), 'some')
  )
$$;

comment on function treadle.need_text(treadle.budgets, numeric) is
'Internal: spent, limit, reserved and needed, for people.';

revoke all on function treadle.need_text(treadle.budgets, numeric) from public;
