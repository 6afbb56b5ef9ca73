-- admit_budget: let parked tasks go that a budget has room for, best first.
--
-- They are looked at again when they are claimed: this never spends, and locks no budget.
--
-- Concurrency: tasks that others hold are passed over; review_budgets finds those later.
-- Lock order:  tasks (never waited for).
-- Raises:      nothing.

create or replace function treadle.admit_budget(p_budget bigint)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  c_many constant integer := 1000;
  v_now  timestamptz := treadle.clock();
  v_left numeric;
  v_task record;
  v_seen integer := 0;
  v_rows tid[] := '{}';
begin
  select treadle.budget_left(budgets, v_now) into v_left
  from treadle.budgets
  where budgets.id = p_budget;

  for v_task in
    select tasks.ctid as place, treadle.money_needed(tasks) as need
    from treadle.tasks
    where
      tasks.budget_id = p_budget and tasks.status = 'pending'
      and treadle.has_room(coalesce(v_left, 'Infinity'), treadle.money_needed(tasks))
    order by tasks.rank, tasks.id
    limit c_many
    for update skip locked
  loop
    v_seen := v_seen + 1;
    -- A budget that is gone has nothing to say any more.
    if v_left is null or treadle.has_room(v_left, v_task.need) then
      v_rows := v_rows || v_task.place;
      v_left := v_left - coalesce(v_task.need, 0);
    end if;
  end loop;
  if v_rows = '{}' then
    return 0;
  end if;

  v_rows := treadle.unpark_rows(v_rows, v_now);
  if v_seen = c_many then
    insert into treadle.admissions (kind, key) values ('budget', p_budget::text);
  end if;
  return cardinality(v_rows);
end;
$$;

comment on function treadle.admit_budget(bigint) is
'Internal: let parked tasks go that a budget has room for.';

revoke all on function treadle.admit_budget(bigint) from public;
