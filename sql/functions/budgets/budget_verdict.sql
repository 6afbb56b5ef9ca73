-- budget_verdict: whether a claimed task may go on, or spend so much more: ok, ask or fail.
--
-- What it has reserved is its own. ask or fail is said by the task, else by its type, else by the
-- budget.
--
-- Concurrency: reads; exact where the caller holds the budgets.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.budget_verdict(
  p_task  treadle.tasks,
  p_usd   numeric,
  out verdict text,
  out reason text,
  out left_usd numeric,
  out budget_id bigint,
  out needed_usd numeric,
  out tokens boolean
)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_now    timestamptz := treadle.clock();
  v_own    numeric := p_task.max_cost_usd - p_task.cost_usd;
  v_tokens bigint := p_task.input_tokens + p_task.output_tokens;
  v_budget treadle.budgets;
  v_room   numeric;
begin
  select budgets.* into v_budget
  from treadle.budgets
  left join treadle.reservations
    on budgets.id = reservations.budget_id and reservations.task_id = p_task.id
  where budgets.id = any (treadle.budgets_of(p_task, p_task.agent_id))
  order by treadle.budget_left(budgets, v_now) + coalesce(reservations.usd, 0)
  limit 1;
  v_room := treadle.budget_left(v_budget, v_now) + coalesce(
    (
      select reservations.usd from treadle.reservations
      where reservations.task_id = p_task.id and reservations.budget_id = v_budget.id
    ), 0
  );
  left_usd := least(v_own, v_room);
  needed_usd := case when p_usd > 0 then p_usd else treadle.money_needed(p_task) end;
  verdict := 'ok';
  tokens := false;
  if v_own < p_usd then
    reason := format(
      'The task has cost %s and may cost %s', treadle.dollars(p_task.cost_usd),
      treadle.dollars(p_task.max_cost_usd)
    ) || case when p_usd > 0 then format('; it needs %s more', treadle.dollars(p_usd)) else '' end;
  elsif v_tokens > p_task.max_tokens then
    tokens := true;
    reason := format('The task has used %s tokens and may use %s', v_tokens, p_task.max_tokens);
  elsif v_room < p_usd then
    budget_id := v_budget.id;
    reason := treadle.need_text(v_budget, needed_usd);
  end if;
  if reason is not null then
    verdict := coalesce(
      p_task.on_budget, case when budget_id is not null then v_budget.on_exhausted end, 'ask'
    );
  end if;
end;
$$;

comment on function treadle.budget_verdict(treadle.tasks, numeric) is
'Internal: whether a task and its budgets have so much left, what is left, and what to do.';

revoke all on function treadle.budget_verdict(treadle.tasks, numeric) from public;
