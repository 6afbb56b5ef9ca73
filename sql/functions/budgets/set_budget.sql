-- set_budget: say what an agent, a DAG, a project, a type or all may spend.
--
-- select treadle.set_budget('agent', 'coder-1', 20, 'day');
-- select treadle.set_budget('all', null, 500, 'month', 'fail');
--
-- Without a period it is for good. What was spent before counts. When it runs out it asks, or with
-- on_exhausted fail the tasks it has no room for give up.
--
-- Concurrency: one row; the ledger is locked while a new budget sums it up.
-- Lock order:  spend, budgets; tasks (never waited for), waits.
-- Raises:      TR001 invalid argument, TR203 unknown type, TR204 unknown agent, TR205 unknown DAG,
--              TR208 unknown project.

create or replace function treadle.set_budget(
  p_scope         text,
  p_key           text,
  p_limit_usd     numeric,
  p_period        text default null,
  p_on_exhausted  text default null,
  p_actor         text default null
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key    text := treadle.budget_key(p_scope, p_key);
  v_actor  text := coalesce(p_actor, session_user);
  v_budget treadle.budgets;
begin
  perform treadle.check_limit(p_limit_usd, p_period, p_on_exhausted);
  perform treadle.keep_durable();
  v_budget := treadle.find_budget(p_scope, v_key, p_period);
  if v_budget.id is null then
    perform treadle.make_budget(
      p_scope, v_key, p_limit_usd, p_period, p_on_exhausted, v_actor
    );
    v_budget := treadle.find_budget(p_scope, v_key, p_period);
  end if;
  perform treadle.check_spent(v_budget, p_limit_usd);
  perform treadle.change_budget(v_budget, p_limit_usd, p_on_exhausted, v_actor);
  return v_budget.id;
end;
$$;

comment on function treadle.set_budget(text, text, numeric, text, text, text) is
'Set what a scope may spend, for good or in each period; returns the id of the budget.';

revoke all on function treadle.set_budget(text, text, numeric, text, text, text) from public;
grant execute on function treadle.set_budget(text, text, numeric, text, text, text) to
treadle_operator;
