-- budget_name: whose budget it is, in words.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.budget_name(p_budget treadle.budgets)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    'the budget of %s%s',
    case p_budget.scope
      when 'all' then 'all tasks'
      when 'dag' then 'DAG ' || coalesce(
        (select dags.name from treadle.dags where dags.id = p_budget.scope_key::uuid),
        p_budget.scope_key
      )
      when 'project' then 'project ' || coalesce(
        (select projects.name from treadle.projects where projects.id = p_budget.scope_key::uuid),
        p_budget.scope_key
      )
      else p_budget.scope || ' ' || p_budget.scope_key
    end,
    ' for this ' || p_budget.period
  )
$$;

comment on function treadle.budget_name(treadle.budgets) is
'Internal: the budget of agent coder-1 for this day.';

revoke all on function treadle.budget_name(treadle.budgets) from public;
