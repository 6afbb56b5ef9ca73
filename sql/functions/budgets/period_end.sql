-- period_end: when the period of a budget is over, by the calendar of UTC; empty without one.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.period_end(p_budget treadle.budgets)
returns timestamptz
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    ((p_budget.period_start at time zone 'UTC') + ('1 ' || p_budget.period)::interval)
    at time zone 'UTC'
$$;

comment on function treadle.period_end(treadle.budgets) is
'Internal: the first moment after the period that a budget counts in.';

revoke all on function treadle.period_end(treadle.budgets) from public;
