-- fail_parked: give up parked tasks that their budget cannot pay and whose policy is fail.
--
-- Concurrency: the tasks are locked in id order, with what falls with them, then judged again. No
--              budget is held.
-- Lock order:  tasks, dags, then the history.
-- Raises:      nothing.

create or replace function treadle.fail_parked(
  p_ids    uuid[],
  p_now    timestamptz,
  p_limit  integer
)
returns uuid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids     uuid[];
  v_reasons text[];
  v_budgets bigint[];
begin
  perform treadle.lock_fallout(p_ids, false);
  perform treadle.lock_tasks(p_ids);
  select array_agg(still.id), array_agg(still.reason), array_agg(distinct still.budget_id)
  into v_ids, v_reasons, v_budgets
  from treadle.hopeless_tasks(
    array(
      select distinct tasks.budget_id from treadle.tasks
      where tasks.id = any (p_ids) and tasks.budget_id is not null
    ),
    'fail', p_now, p_limit
  ) as still
  where still.id = any (p_ids);
  if v_ids is null then
    return '{}';
  end if;
  perform treadle.bury_tasks(v_ids, v_reasons, null, p_now);
  insert into treadle.events (at, kind, data)
  select p_now, 'budget.exhausted', treadle.budget_facts(budgets)
  from treadle.budgets
  where budgets.id = any (v_budgets);
  return v_ids;
end;
$$;

comment on function treadle.fail_parked(uuid[], timestamptz, integer) is
'Internal: makes dead letters of tasks that a budget has no money for.';

revoke all on function treadle.fail_parked(uuid[], timestamptz, integer) from public;
