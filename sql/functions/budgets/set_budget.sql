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

-- budget_key: the key that a budget is stored under; an error when there is no such thing.
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
    perform treadle.refuse(
      format('scope cannot be %s', coalesce(quote_literal(left(p_scope, 60)), 'null')),
      jsonb_build_object('argument', 'scope'), 'Use agent, dag, project, type or all.'
    );
  elsif p_scope = 'all' and coalesce(p_key, '') <> '' then
    perform treadle.refuse(
      format('the budget of all has no key, not %L', left(p_key, 60)),
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
    perform treadle.refuse(
      format('there is no %s %s', p_scope, coalesce(quote_literal(left(p_key, 60)), 'null')),
      jsonb_build_object('argument', 'key', 'scope', p_scope, 'key', left(p_key, 200)),
      'A budget needs what it is for: make that first.',
      case p_scope
        when 'agent' then 'TR204' when 'dag' then 'TR205' when 'type' then 'TR203' else 'TR208'
      end
    );
  end if;
  return v_key;
end;
$$;

-- check_limit: refuse a limit that is no amount of money, or a period or policy nobody knows.
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
    perform treadle.refuse(
      format('limit_usd must be 0 to 99999999 dollars, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit_usd'),
      'To have no limit, remove the budget.'
    );
  elsif p_period not in ('hour', 'day', 'week', 'month') then
    perform treadle.refuse(
      format('period cannot be %L', left(p_period, 60)),
      jsonb_build_object('argument', 'period'),
      'Use hour, day, week or month; without one the budget is for good.'
    );
  elsif p_on_exhausted not in ('ask', 'fail') then
    perform treadle.refuse(
      format('on_exhausted cannot be %L', left(p_on_exhausted, 60)),
      jsonb_build_object('argument', 'on_exhausted'),
      'Use ask or fail.'
    );
  end if;
end;
$$;

-- check_spent: refuse a limit below what a budget has spent and reserved.
--
-- Concurrency: the caller holds the budget.
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

-- find_budget: the budget of a scope and period, locked; empty when there is none.
--
-- Concurrency: waits for who holds it, then begins its new period where that is due.
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

-- spent_in: what the ledger has for a scope, from a moment on.
--
-- With what was summed up when tasks were pruned, by whole hours; a DAG goes with all its tasks.
--
-- Concurrency: reads; who needs it exact keeps the ledger locked.
create or replace function treadle.spent_in(p_scope text, p_key text, p_since timestamptz)
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

-- make_budget: store a new budget with what was spent before it was made.
--
-- Concurrency: the ledger is locked against writing while it is summed up: who pays meanwhile
--              waits, then finds the budget.
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
    p_scope, p_key, p_period, p_limit, treadle.spent_in(p_scope, p_key, v_start), v_start,
    coalesce(p_on_exhausted, 'ask'), p_by
  )
  on conflict (scope, scope_key, period) do nothing
  returning budgets.id into v_id;
  return v_id;
end;
$$;

-- change_budget: give a budget another limit or policy, and let those go on that it has room for.
--
-- Concurrency: the caller holds the budget.
-- Lock order:  budgets; tasks (never waited for), waits.
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

grant execute on function treadle.set_budget(text, text, numeric, text, text, text) to
treadle_operator;
