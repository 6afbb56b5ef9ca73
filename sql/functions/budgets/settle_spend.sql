-- settle_spend: move what a task has paid from reserved to spent, in every budget it draws on.
--
-- What passes its reservation is counted all the same: it was paid.
--
-- Concurrency: the caller holds the task; the budgets are locked, then written.
-- Lock order:  budgets, by id, after tasks; reservations, events.
-- Raises:      nothing.

create or replace function treadle.settle_spend(p_task treadle.tasks, p_usd numeric)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_now timestamptz := treadle.clock();
  v_ids bigint[] := treadle.budgets_of(p_task, p_task.agent_id);
begin
  if v_ids = '{}' then
    return;
  end if;
  v_ids := treadle.lock_budgets(v_ids, true);
  perform treadle.roll_budgets(v_ids, v_now);

  with drawn as (
    update treadle.reservations
    set usd = reservations.usd - least(reservations.usd, p_usd)
    from treadle.reservations as before
    where
      reservations.task_id = p_task.id and reservations.budget_id = any (v_ids)
      and before.task_id = reservations.task_id and before.budget_id = reservations.budget_id
    returning reservations.budget_id, before.usd - reservations.usd as usd
  )

  update treadle.budgets
  set
    spent_usd = budgets.spent_usd + p_usd,
    reserved_usd = budgets.reserved_usd - coalesce(
      (select drawn.usd from drawn where drawn.budget_id = budgets.id), 0
    )
  where budgets.id = any (v_ids);
  perform treadle.tell_budgets(v_ids, p_task.id, p_usd, v_now);
end;
$$;

comment on function treadle.settle_spend(treadle.tasks, numeric) is
'Internal: counts dollars that a claimed task has paid in its budgets.';

revoke all on function treadle.settle_spend(treadle.tasks, numeric) from public;
