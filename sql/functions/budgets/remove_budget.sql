-- remove_budget: remove a budget, so that its scope may spend without this limit; returns its id.
--
-- select treadle.remove_budget('agent', 'coder-1', 'day');
--
-- Lock order:  budgets, reservations; tasks (skips locked rows), waits.
-- Raises:      TR001 invalid argument, TR210 unknown budget.

create or replace function treadle.remove_budget(
  p_scope   text,
  p_key     text default null,
  p_period  text default null,
  p_actor   text default null
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id     bigint;
  v_budget treadle.budgets;
begin
  perform treadle.check_limit(0, p_period, null);
  perform treadle.ensure_durable();
  -- The agent, DAG, project or type may no longer exist.
  select budgets.id into v_id
  from treadle.budgets
  where
    budgets.scope = p_scope
    and budgets.scope_key in (
      coalesce(p_key, ''),
      (select projects.id::text from treadle.projects
       where p_scope = 'project' and projects.name = p_key)
    )
    and budgets.period is not distinct from p_period;
  delete from treadle.budgets where budgets.id = v_id returning budgets.* into v_budget;
  if v_budget.id is null then
    perform treadle.raise_error(
      format('there is no such budget: %s %s %s', p_scope, left(p_key, 100), p_period),
      jsonb_build_object('scope', p_scope, 'key', left(p_key, 200), 'period', p_period),
      'List them: select * from treadle.budget_status', 'TR210'
    );
  end if;

  delete from treadle.reservations where reservations.budget_id = v_id;
  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'budget.removed', coalesce(p_actor, session_user),
    treadle.budget_json(v_budget)
  );
  perform treadle.close_budget_waits(v_id, coalesce(p_actor, session_user));
  perform treadle.request_budgets(array[v_id]);
  return v_id;
end;
$$;

comment on function treadle.remove_budget(text, text, text, text) is
'Remove a budget; tasks that waited for it go on.';

grant execute on function treadle.remove_budget(text, text, text, text) to treadle_operator;
