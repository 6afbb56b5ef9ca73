-- make_budget: store a new budget with what was spent before it was made.
--
-- Concurrency: the ledger is locked against writing while it is summed up: who pays meanwhile
--              waits, then finds the budget.
-- Lock order:  spend (the whole table), budgets.
-- Raises:      nothing.

create or replace function treadle.make_budget(
  p_scope         text,
  p_key           text,
  p_limit         numeric,
  p_period        text,
  p_on_exhausted  text,
  p_by            text
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_start timestamptz;
  v_id    bigint;
begin
  lock table treadle.spend in share mode;
  v_start := treadle.period_start(p_period, treadle.clock());
  insert into treadle.budgets (
    scope, scope_key, period, limit_usd, spent_usd, period_start, on_exhausted, created_by
  )
  values (
    p_scope, p_key, p_period, p_limit, treadle.spent_in(p_scope, p_key, v_start), v_start,
    coalesce(p_on_exhausted, 'ask'), p_by
  )
  on conflict (scope, scope_key, period) do nothing
  returning budgets.id into v_id;
  return v_id;
end;
$$;

comment on function treadle.make_budget(text, text, numeric, text, text, text) is
'Internal: a budget that knows its past; null where another session was first.';

revoke all on function treadle.make_budget(text, text, numeric, text, text, text) from public;
