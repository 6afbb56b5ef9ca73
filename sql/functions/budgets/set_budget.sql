-- set_budget: set how much an agent, a DAG, a project, a type or everything may spend.
--
-- select treadle.set_budget('agent', 'coder-1', 20, 'day');
-- select treadle.set_budget('all', null, 500, 'month', 'fail');
--
-- Without a period the budget never resets. Earlier spending counts. When the budget is exhausted,
-- it asks a person; with on_exhausted fail, tasks that it cannot pay are given up.
--
-- Concurrency: one row; the ledger is locked while its total is computed for a new budget.
-- Lock order:  spend, budgets; tasks (skips locked rows), waits.
-- Raises:      TR001 invalid argument, TR203 unknown type, TR204 unknown agent, TR205 unknown DAG,
--              TR208 unknown project.

-- budget_key: return the key that a budget is stored under; an error if its target does not exist.
--
-- Raises:      TR001 invalid argument, TR203 unknown type, TR204 unknown agent, TR205 unknown DAG,
--              TR208 unknown project.
create or replace function treadle.budget_key(p_scope text, p_key text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_uuid constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  v_uuid uuid := case when p_key ~ c_uuid then p_key::uuid end;
  v_key  text;
begin
  if p_scope is null or p_scope not in ('agent', 'dag', 'project', 'type', 'all') then
    perform treadle.raise_error(
      format('scope cannot be %s', coalesce(quote_literal(left(p_scope, 60)), 'null')),
      jsonb_build_object('argument', 'scope'), 'Use agent, dag, project, type or all.'
    );
  elsif p_scope = 'all' and coalesce(p_key, '') <> '' then
    perform treadle.raise_error(
      format('the budget of all tasks has no key, but %L was given', left(p_key, 60)),
      jsonb_build_object('argument', 'key'), 'Leave the key empty.'
    );
  end if;

  v_key := case p_scope
    when 'all' then ''
    when 'agent' then (select agents.id from treadle.agents where agents.id = p_key)
    when 'dag' then (select dags.id::text from treadle.dags where dags.id = v_uuid)
    when 'type' then (select task_types.name from treadle.task_types where task_types.name = p_key)
    else (
      select projects.id::text
      from treadle.projects
      where projects.id = v_uuid or projects.name = p_key
      order by projects.id = v_uuid desc nulls last
      limit 1
    )
  end;
  if v_key is null then
    perform treadle.raise_error(
      format('there is no %s %s', p_scope, coalesce(quote_literal(left(p_key, 60)), 'null')),
      jsonb_build_object('argument', 'key', 'scope', p_scope, 'key', left(p_key, 200)),
      'Create it before you give it a budget.',
      case p_scope
        when 'agent' then 'TR204' when 'dag' then 'TR205' when 'type' then 'TR203' else 'TR208'
      end
    );
  end if;
  return v_key;
end;
$$;

-- check_limit: check the amount, the period and the policy of a budget.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_limit(
  p_limit         numeric,
  p_period        text,
  p_on_exhausted  text
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit is null or p_limit = 'NaN' or p_limit not between 0 and 99999999 then
    perform treadle.raise_error(
      format('limit_usd must be 0 to 99999999, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit_usd'),
      'To have no limit, remove the budget.'
    );
  elsif p_period not in ('hour', 'day', 'week', 'month') then
    perform treadle.raise_error(
      format('period cannot be %L', left(p_period, 60)),
      jsonb_build_object('argument', 'period'),
      'Use hour, day, week or month; without a period the budget never resets.'
    );
  elsif p_on_exhausted not in ('ask', 'fail') then
    perform treadle.raise_error(
      format('on_exhausted cannot be %L', left(p_on_exhausted, 60)),
      jsonb_build_object('argument', 'on_exhausted'),
      'Use ask or fail.'
    );
  end if;
end;
$$;

-- check_spent: reject a limit below what a budget has spent and reserved.
--
-- Concurrency: the caller has locked the budget.
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_spent(p_budget treadle.budgets, p_limit numeric)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_limit < p_budget.spent_usd + p_budget.reserved_usd then
    perform treadle.raise_error(
      format(
        '%s cannot be %s: %s is spent and %s reserved', treadle.budget_name(p_budget),
        treadle.format_usd(p_limit), treadle.format_usd(p_budget.spent_usd),
        treadle.format_usd(p_budget.reserved_usd)
      ),
      jsonb_build_object('argument', 'limit_usd') || treadle.budget_json(p_budget),
      format('The minimum is %s now.', treadle.format_usd(
        p_budget.spent_usd + p_budget.reserved_usd
      ))
    );
  end if;
end;
$$;

-- find_budget: lock and return the budget of a scope and period; null if there is none.
--
-- Concurrency: waits for the lock, then starts a new period if one is due.
-- Lock order:  budgets.
create or replace function treadle.find_budget(p_scope text, p_key text, p_period text)
returns treadle.budgets
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_budget treadle.budgets;
begin
  select budgets.* into v_budget
  from treadle.budgets
  where
    budgets.scope = p_scope and budgets.scope_key = p_key
    and budgets.period is not distinct from p_period
  for no key update;
  perform treadle.roll_budgets(array[v_budget.id], treadle.clock()) where v_budget.id is not null;
  select budgets.* into v_budget from treadle.budgets where budgets.id = v_budget.id;
  return v_budget;
end;
$$;

-- ledger_total: return the total of the ledger for a scope since a given time.
--
-- Includes the hourly totals of pruned tasks. A DAG is pruned together with all its tasks.
--
-- Concurrency: reads only; for an exact total, lock the ledger first.
create or replace function treadle.ledger_total(p_scope text, p_key text, p_since timestamptz)
returns numeric
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(paid.usd), 0)
  from (
    select spend.at, spend.agent_id, spend.dag_id, spend.project_id, spend.type, spend.usd
    from treadle.spend
    union all
    select
      spend_hours.hour, spend_hours.agent_id, null, spend_hours.project_id, spend_hours.type,
      spend_hours.usd
    from treadle.spend_hours
  ) as paid
  where
    paid.at >= coalesce(p_since, '-infinity')
    and case p_scope
      when 'agent' then paid.agent_id = p_key
      when 'dag' then paid.dag_id = p_key::uuid
      when 'project' then paid.project_id = p_key::uuid
      when 'type' then paid.type = p_key
      else true
    end
$$;

-- make_budget: insert a new budget, including what was spent before.
--
-- Concurrency: the ledger is locked against writes while the total is computed. Sessions that
-- record spend wait, and then see the budget.
-- Lock order:  spend (the whole table), budgets.
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
    p_scope, p_key, p_period, p_limit, treadle.ledger_total(p_scope, p_key, v_start), v_start,
    coalesce(p_on_exhausted, 'ask'), p_by
  )
  on conflict (scope, scope_key, period) do nothing
  returning budgets.id into v_id;
  return v_id;
end;
$$;

-- change_budget: change the limit or policy of a budget, and release tasks that it now has room
-- for.
--
-- Concurrency: the caller has locked the budget.
-- Lock order:  budgets; tasks (skips locked rows), waits.
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
    -- If the limit was raised enough, the budget can warn again.
    warned_at = case when budgets.spent_usd >= 0.8 * p_limit then budgets.warned_at end
  where budgets.id = p_budget.id
  returning budgets.* into v_budget;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'budget.set', p_actor,
    treadle.budget_json(v_budget)
    || jsonb_build_object('was_usd', p_budget.limit_usd, 'on_exhausted', v_budget.on_exhausted)
  );
  perform treadle.close_budget_waits(v_budget.id, p_actor);
  perform treadle.request_budgets(array[v_budget.id]);
  -- A changed policy may end tasks that wait.
  perform treadle.notify_promoter(treadle.clock());
end;
$$;

-- ensure_budget: set the budget that an agent registers with, or that a DAG is created with.
--
-- An agent registers again at every start: a limit that a person has set since then stays, and a
-- limit below what is spent is raised to that amount.
--
-- Concurrency: see set_budget.
-- Lock order:  spend, budgets.
-- Raises:      TR001 invalid argument.
create or replace function treadle.ensure_budget(p_scope text, p_key text, p_limit numeric)
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
    -- None of its tasks has run, so there is no earlier spending.
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
  perform treadle.ensure_durable();
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
'Set what a scope may spend, in total or per period; returns the id of the budget.';

grant execute on function treadle.set_budget(text, text, numeric, text, text, text) to
treadle_operator;
