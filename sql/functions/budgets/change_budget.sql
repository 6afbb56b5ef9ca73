-- change_budget: give a budget another limit or policy, and let those go on that it has room for.
--
-- Concurrency: the caller holds the budget.
-- Lock order:  budgets; tasks (never waited for), waits.
-- Raises:      nothing.

create or replace function treadle.change_budget(
  p_budget        treadle.budgets,
  p_limit         numeric,
  p_on_exhausted  text,
  p_actor         text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_budget treadle.budgets;
begin
  update treadle.budgets
  set
    limit_usd = p_limit,
    on_exhausted = coalesce(p_on_exhausted, budgets.on_exhausted),
    created_by = p_actor,
    -- Raised far enough, it can warn again.
    warned_at = case when budgets.spent_usd >= 0.8 * p_limit then budgets.warned_at end
  where budgets.id = p_budget.id
  returning budgets.* into v_budget;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'budget.set', p_actor,
    treadle.budget_facts(v_budget)
    || jsonb_build_object('was_usd', p_budget.limit_usd, 'on_exhausted', v_budget.on_exhausted)
  );
  perform treadle.close_questions(v_budget.id, p_actor);
  perform treadle.request_budgets(array[v_budget.id]);
  -- Another policy may end what waits.
  perform treadle.wake_promoter(treadle.clock());
end;
$$;

comment on function treadle.change_budget(treadle.budgets, numeric, text, text) is
'Internal: writes the limit of a locked budget and asks for admission.';

revoke all on function treadle.change_budget(treadle.budgets, numeric, text, text) from public;
