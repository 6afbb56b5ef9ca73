-- budgets_over: the budgets that any of some tasks of an agent draw on.
--
-- By keys, not task by task: most tasks of a claim are of one kind.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.budgets_over(tid[], text) is
'Internal: ids of the budgets of these tasks, of the agent, and of all.';

revoke all on function treadle.budgets_over(tid[], text) from public;
