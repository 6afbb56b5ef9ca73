-- review_budget: let those go on that a budget has room for; ask where it has run out.
--
-- One question is open about a budget at a time, on the best task that it cannot pay.
--
-- Concurrency: the budget is written, so that of two sessions one asks; one that is held by
--              others is left to the next round, and so are tasks.
-- Lock order:  budgets (never waited for), tasks (never waited for), waits.
-- Raises:      nothing.

create or replace function treadle.review_budget(p_budget bigint, p_now timestamptz)
returns uuid
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_held  bigint[] := treadle.lock_budgets(array[p_budget], false);
  v_next  record;
  v_task  treadle.tasks;
  v_row   tid;
begin
  perform treadle.roll_budgets(v_held, p_now);
  perform treadle.close_questions(p_budget, null);
  perform treadle.admit_budget(p_budget);
  update treadle.budgets set on_exhausted = budgets.on_exhausted where budgets.id = any (v_held);
  if not found or exists (
    select from treadle.waits where waits.budget_id = p_budget and waits.status = 'open'
  ) then
    return null;
  end if;

  for v_next in
    select hopeless.id, hopeless.need, hopeless.reason
    from treadle.hopeless_tasks(array[p_budget], 'ask', p_now, 10) as hopeless
  loop
    select tasks.* into v_task
    from treadle.tasks
    where tasks.id = v_next.id and tasks.status = 'pending' and tasks.budget_id = p_budget
    for no key update skip locked;
    exit when found;
  end loop;
  if v_task.id is null then
    return null;
  end if;

  perform treadle.ask_for_money(v_task, p_budget, v_next.need, v_next.reason, true);
  update treadle.tasks set status = 'blocked' where tasks.id = v_task.id
  returning tasks.ctid into v_row;
  perform treadle.audit_tasks(array[v_row], 'blocked', null);
  insert into treadle.events (at, kind, task_id, data)
  select p_now, 'budget.exhausted', v_task.id, treadle.budget_facts(budgets)
  from treadle.budgets
  where budgets.id = p_budget;
  return v_task.id;
end;
$$;

comment on function treadle.review_budget(bigint, timestamptz) is
'Internal: looks at one budget that tasks wait for; returns the task that asks now.';

revoke all on function treadle.review_budget(bigint, timestamptz) from public;
