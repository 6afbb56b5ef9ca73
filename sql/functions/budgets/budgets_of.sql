-- budgets_of: the budgets that a task of an agent draws on.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.budgets_of(treadle.tasks, text) is
'Internal: ids of the budgets of the agent, DAG, project and type, and of all.';

revoke all on function treadle.budgets_of(treadle.tasks, text) from public;
