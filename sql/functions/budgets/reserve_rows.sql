-- reserve_rows: reserve what claimed tasks may spend.
--
-- Concurrency: afford_rows has locked the budgets and found room. One that was made since is left
--              out unless it has room as well: it counts from the next claim on.
-- Lock order:  budgets, after tasks; reservations.
-- Raises:      nothing.

create or replace function treadle.reserve_rows(p_rows tid[], p_agent text, p_now timestamptz)
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
  v_tasks uuid[];
  v_ids   bigint[];
  v_usd   numeric[];
begin
  if treadle.budgets_over(p_rows, p_agent) = '{}' then
    return;
  end if;
  select array_agg(tasks.id), array_agg(drawn.id), array_agg(treadle.money_needed(tasks))
  into v_tasks, v_ids, v_usd
  from treadle.tasks
  cross join lateral unnest(treadle.budgets_of(tasks, p_agent)) as drawn (id)
  where tasks.ctid = any (p_rows) and treadle.money_needed(tasks) > 0;
  if v_ids is null then
    return;
  end if;

  with wanted as (
    select given.id, sum(given.usd) as usd
    from unnest(v_ids, v_usd) as given (id, usd)
    group by given.id
  ),

  booked as (
    update treadle.budgets
    set reserved_usd = budgets.reserved_usd + wanted.usd
    from wanted
    where budgets.id = wanted.id and treadle.budget_left(budgets, p_now) >= wanted.usd
    returning budgets.id
  )

  insert into treadle.reservations (task_id, budget_id, usd)
  select given.task_id, given.id, given.usd
  from unnest(v_tasks, v_ids, v_usd) as given (task_id, id, usd)
  inner join booked on given.id = booked.id
  on conflict (task_id, budget_id) do update set usd = reservations.usd + excluded.usd;
end;
$$;

comment on function treadle.reserve_rows(tid[], text, timestamptz) is
'Internal: reserve what claimed tasks may spend.';

revoke all on function treadle.reserve_rows(tid[], text, timestamptz) from public;
