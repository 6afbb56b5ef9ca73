-- give_budget: the budget that an agent registers with, or that a DAG is made with.
--
-- An agent registers again whenever it starts: a limit that a person has set since stays, and one
-- below what is spent is lowered no further than that.
--
-- Concurrency: as set_budget.
-- Lock order:  spend, budgets.
-- Raises:      TR001 invalid argument.

create or replace function treadle.give_budget(p_scope text, p_key text, p_limit numeric)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_by     constant text := 'treadle';
  v_budget treadle.budgets;
begin
  perform treadle.check_limit(p_limit, null, null);
  v_budget := treadle.find_budget(p_scope, p_key, null);
  if v_budget.id is null and p_scope = 'dag' then
    -- Nothing of it has run: there is nothing to sum up.
    insert into treadle.budgets (scope, scope_key, limit_usd, created_by)
    values (p_scope, p_key, p_limit, c_by);
    return;
  elsif v_budget.id is null then
    perform treadle.make_budget(p_scope, p_key, p_limit, null, null, c_by);
    v_budget := treadle.find_budget(p_scope, p_key, null);
  end if;
  if v_budget.created_by = c_by then
    update treadle.budgets
    set limit_usd = greatest(p_limit, budgets.spent_usd + budgets.reserved_usd)
    where budgets.id = v_budget.id;
    perform treadle.request_budgets(array[v_budget.id]);
  end if;
end;
$$;

comment on function treadle.give_budget(text, text, numeric) is
'Internal: sets a budget unless a person has set it.';

revoke all on function treadle.give_budget(text, text, numeric) from public;
