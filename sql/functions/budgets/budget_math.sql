-- budget_math: compute periods and remaining amounts, and find the budgets of a task; reads only.

-- period_end: return when the period of a budget ends, in UTC; null without a period.
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

-- period_start: return when the hour, day, week or month of a time began, in UTC.
create or replace function treadle.period_start(p_period text, p_at timestamptz)
returns timestamptz
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select date_trunc(p_period, p_at, 'UTC')
$$;

-- budget_left: return the part of a budget that is neither spent nor reserved at a given time.
--
-- A period that has ended counts as reset, even if no session has stored that yet.
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

-- remaining_cost: return what a task may still cost; null if it has no limit.
create or replace function treadle.remaining_cost(p_task treadle.tasks)
returns numeric
language sql
immutable
parallel safe
return case
  when p_task.max_cost_usd is not null
    then greatest(p_task.max_cost_usd - p_task.cost_usd, 0)
end;

-- fits_budget: return whether an amount is enough for a task.
--
-- A task without a limit only needs an amount above zero.
create or replace function treadle.fits_budget(p_usd numeric, p_need numeric)
returns boolean
language sql
immutable
parallel safe
return case when p_need is null then p_usd > 0 else p_usd >= p_need end;

-- budgets_of: return the budgets that a task of an agent draws on.
create or replace function treadle.budgets_of(p_task treadle.tasks, p_agent text)
returns bigint[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select budgets.id
    from treadle.budgets
    where
      (budgets.scope = 'agent' and budgets.scope_key = p_agent)
      or (budgets.scope = 'dag' and budgets.scope_key = p_task.dag_id::text)
      or (budgets.scope = 'project' and budgets.scope_key = p_task.project_id::text)
      or (budgets.scope = 'type' and budgets.scope_key = p_task.type)
      or (budgets.scope = 'all' and budgets.scope_key = '')
    order by budgets.id
  )
$$;

-- budgets_over: return the budgets that any of several tasks of an agent draw on.
--
-- Looks up keys instead of single tasks: most tasks of a claim share the same keys.
create or replace function treadle.budgets_over(p_rows tid[], p_agent text)
returns bigint[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_keys record;
begin
  select
    array_agg(distinct tasks.dag_id::text) as dags,
    array_agg(distinct tasks.project_id::text) as projects,
    array_agg(distinct tasks.type) as types
  into v_keys
  from treadle.tasks
  where tasks.ctid = any (p_rows);
  return array(
    select budgets.id
    from treadle.budgets
    where
      (budgets.scope = 'agent' and budgets.scope_key = p_agent)
      or (budgets.scope = 'dag' and budgets.scope_key = any (v_keys.dags))
      or (budgets.scope = 'project' and budgets.scope_key = any (v_keys.projects))
      or (budgets.scope = 'type' and budgets.scope_key = any (v_keys.types))
      or (budgets.scope = 'all' and budgets.scope_key = '')
  );
end;
$$;

-- agent_budget_left: return what is left in the smallest budget of an agent; null if it has none.
--
-- Below zero if nothing is left; then not even a task without a limit fits.
--
-- Concurrency: reads only; filter_affordable checks again with the budgets locked.
create or replace function treadle.agent_budget_left(p_agent text, p_now timestamptz)
returns numeric
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select case when min(rooms.usd) <= 0 then -1 else min(rooms.usd) end
  from (
    select treadle.budget_left(budgets, p_now) as usd
    from treadle.budgets
    where budgets.scope = 'agent' and budgets.scope_key = p_agent
  ) as rooms
$$;

-- budget_json: return a budget as JSON for events and questions.
create or replace function treadle.budget_json(p_budget treadle.budgets)
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

-- budget_name: describe a budget in words.
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

-- need_text: describe what a budget has left and what a task needs from it.
create or replace function treadle.need_text(p_budget treadle.budgets, p_needed numeric)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
    '%s of %s is spent of %s%s; the task needs %s',
    treadle.format_usd(p_budget.spent_usd), treadle.format_usd(p_budget.limit_usd),
    treadle.budget_name(p_budget),
    case
      when p_budget.reserved_usd > 0
        then format(', %s is reserved', treadle.format_usd(p_budget.reserved_usd))
      else ''
    end,
    coalesce(treadle.format_usd(p_needed), 'some')
  )
$$;
