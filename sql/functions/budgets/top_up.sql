-- top_up: raise the reservations of a task to so much, in each of its budgets.
--
-- Concurrency: the caller holds the task and the budgets, and has found room.
-- Lock order:  budgets, reservations.
-- Raises:      nothing.

create or replace function treadle.top_up(p_task uuid, p_budgets bigint[], p_usd numeric)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  update treadle.budgets
  set reserved_usd = budgets.reserved_usd + greatest(
    0,
    p_usd - coalesce(
      (
        select reservations.usd from treadle.reservations
        where reservations.task_id = p_task and reservations.budget_id = budgets.id
      ), 0
    )
  )
  where budgets.id = any (p_budgets);
  insert into treadle.reservations (task_id, budget_id, usd)
  select p_task, given.id, p_usd from unnest(p_budgets) as given (id)
  on conflict (task_id, budget_id) do update
  set usd = greatest(reservations.usd, excluded.usd);
  -- The end of the claim has something to give back.
  update treadle.tasks set budgeted = true where tasks.id = p_task and not tasks.budgeted;
end;
$$;

comment on function treadle.top_up(uuid, bigint[], numeric) is
'Internal: reserves for a task that runs.';

revoke all on function treadle.top_up(uuid, bigint[], numeric) from public;
