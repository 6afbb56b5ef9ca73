-- why_money: budgets that have less left than a task may spend.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_money(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_need numeric := treadle.money_needed(p_task);
begin
  if not exists (select from treadle.budgets) then
    return;
  end if;

  return query
  select
    format(
      '%s has %s left of %s (%s spent, %s reserved), the task needs %s',
      treadle.budget_name(budgets), treadle.dollars(room.usd), treadle.dollars(budgets.limit_usd),
      treadle.dollars(budgets.limit_usd - budgets.reserved_usd - room.usd),
      treadle.dollars(budgets.reserved_usd), coalesce(treadle.dollars(v_need), 'some')
    ),
    'budget',
    treadle.period_start(budgets.period, p_now)
    + case when budgets.period is not null then ('1 ' || budgets.period)::interval end,
    treadle.budget_facts(budgets) || jsonb_build_object('left_usd', room.usd, 'needs_usd', v_need)
  from treadle.budgets
  cross join lateral (select treadle.budget_left(budgets, p_now) as usd) as room
  where
    budgets.id = any (treadle.budgets_of(p_task, null))
    and not treadle.has_room(room.usd, v_need)
  order by room.usd, budgets.id;

  if not found and p_task.budget_id is not null and p_task.status = 'pending' then
    return query
    select
      treadle.budget_name(budgets) || ' has room: the next claim or the promoter lets it go',
      'admission',
      null::timestamptz,
      treadle.budget_facts(budgets)
    from treadle.budgets
    where budgets.id = p_task.budget_id;
  end if;
end;
$$;

comment on function treadle.why_money(treadle.tasks, timestamptz) is
'Internal: which budgets keep a task back, and when their next period begins.';

revoke all on function treadle.why_money(treadle.tasks, timestamptz) from public;
