-- reserve_spend: reserve an amount for a running task before it spends it.
--
-- select verdict, left_usd from treadle.reserve_spend(id, token, 0.50);
--
-- ok: the amount is reserved in each of its budgets. ask: there is not enough, and a wait that asks
-- for it is open; suspend the task on that wait. fail: there is not enough, and the policy is not
-- to ask. With an amount of 0 it reports the state after a spend; with p_ask false it changes
-- nothing.
--
-- Concurrency: see lock_claim; the budgets are locked before they are read.
-- Lock order:  tasks, waits, budgets by id, reservations.
-- Raises:      TR001 invalid argument, TR101 claim lost.

-- budget_verdict: decide whether a claimed task may go on, or spend a further amount: ok, ask or
-- fail.
--
-- The task's own reservations count as available. The policy, ask or fail, is that of the task,
-- else of its type, else of the budget.
--
-- Concurrency: reads only; exact if the caller has locked the budgets.
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
  v_rest   treadle.task_options := treadle.options_of(p_task);
  v_tokens bigint := case
    when v_rest.max_tokens is not null then treadle.tokens_of(p_task.id)
  end;
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
  needed_usd := case when p_usd > 0 then p_usd else treadle.remaining_cost(p_task) end;
  verdict := 'ok';
  tokens := false;
  if v_own < p_usd then
    reason := format(
      'The task has cost %s and may cost %s', treadle.format_usd(p_task.cost_usd),
      treadle.format_usd(p_task.max_cost_usd)
    ) || case when p_usd > 0 then format('; it needs %s more', treadle.format_usd(
      p_usd
    )) else '' end;
  elsif v_tokens > v_rest.max_tokens then
    tokens := true;
    reason := format('The task has used %s tokens and may use %s', v_tokens, v_rest.max_tokens);
  elsif v_room < p_usd then
    budget_id := v_budget.id;
    reason := treadle.need_text(v_budget, needed_usd);
  end if;
  if reason is not null then
    verdict := coalesce(
      v_rest.on_budget, case when budget_id is not null then v_budget.on_exhausted end, 'ask'
    );
  end if;
end;
$$;

-- raise_reservations: raise the reservations of a task to an amount, in each of its budgets.
--
-- Concurrency: the caller has locked the task and the budgets, and has found room.
-- Lock order:  budgets, reservations.
create or replace function treadle.raise_reservations(
  p_task uuid, p_budgets bigint[], p_usd numeric
)
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
  -- Now the end of the claim has a reservation to release.
  update treadle.tasks set budgeted = true where tasks.id = p_task and not tasks.budgeted;
end;
$$;

create or replace function treadle.reserve_spend(
  p_id     uuid,
  p_token  uuid,
  p_usd    numeric default 0,
  p_ask    boolean default true,
  out cost_usd numeric,
  out max_cost_usd numeric,
  out left_usd numeric,
  out verdict text,
  out reason text,
  out wait_id uuid
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_task  treadle.tasks;
  v_ids   bigint[];
  v_found record;
begin
  if p_usd is null or p_usd = 'NaN' or p_usd not between 0 and 1000000 then
    perform treadle.raise_error(
      format('usd must be 0 to 1000000, not %s', coalesce(p_usd::text, 'null')),
      jsonb_build_object('argument', 'usd'), 'Reserve the most that the next call may cost.'
    );
  end if;
  v_task := treadle.lock_claim(p_id, p_token);
  v_ids := treadle.budgets_of(v_task, v_task.agent_id);
  if p_ask and v_ids <> '{}' then
    v_ids := treadle.lock_budgets(v_ids, true);
    perform treadle.roll_budgets(v_ids, treadle.clock());
  end if;

  v_found := treadle.budget_verdict(v_task, p_usd);
  if v_found.verdict = 'ok' and p_usd > 0 and p_ask then
    perform treadle.raise_reservations(p_id, v_ids, p_usd);
  elsif v_found.verdict = 'ask' and p_ask then
    wait_id := treadle.open_budget_wait(
      v_task, v_found.budget_id, v_found.needed_usd, v_found.reason, false, v_found.tokens
    );
  end if;
  cost_usd := v_task.cost_usd;
  max_cost_usd := v_task.max_cost_usd;
  left_usd := v_found.left_usd;
  verdict := v_found.verdict;
  reason := v_found.reason;
end;
$$;

comment on function treadle.reserve_spend(uuid, uuid, numeric, boolean) is
'Reserve dollars for a claimed task; returns ok, ask (with a wait) or fail, and what is left.';

grant execute on function treadle.reserve_spend(uuid, uuid, numeric, boolean) to treadle_worker;
