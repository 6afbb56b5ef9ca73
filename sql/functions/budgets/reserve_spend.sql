-- reserve_spend: make sure that a running task has so much to spend, before it does.
--
-- select verdict, left_usd from treadle.reserve_spend(id, token, 0.50);
--
-- ok: so much is reserved for it in each of its budgets. ask: there is not, and the wait that
-- asks for it is open: suspend the task on it. fail: there is not, and nobody is to be asked. With
-- nothing to reserve it says how things stand after a spend; with p_ask false it only looks.
--
-- Concurrency: see hold_claim; the budgets are locked, then read.
-- Lock order:  tasks, waits, budgets by id, reservations.
-- Raises:      TR001 invalid argument, TR101 claim lost.

-- budget_verdict: whether a claimed task may go on, or spend so much more: ok, ask or fail.
--
-- What it has reserved is its own. ask or fail is said by the task, else by its type, else by the
-- budget.
--
-- Concurrency: reads; exact where the caller holds the budgets.
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

-- top_up: raise the reservations of a task to so much, in each of its budgets.
--
-- Concurrency: the caller holds the task and the budgets, and has found room.
-- Lock order:  budgets, reservations.
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
    perform treadle.refuse(
      format('usd must be 0 to a million dollars, not %s', coalesce(p_usd::text, 'null')),
      jsonb_build_object('argument', 'usd'), 'Reserve what the next call may cost.'
    );
  end if;
  v_task := treadle.hold_claim(p_id, p_token);
  v_ids := treadle.budgets_of(v_task, v_task.agent_id);
  if p_ask and v_ids <> '{}' then
    v_ids := treadle.lock_budgets(v_ids, true);
    perform treadle.roll_budgets(v_ids, treadle.clock());
  end if;

  v_found := treadle.budget_verdict(v_task, p_usd);
  if v_found.verdict = 'ok' and p_usd > 0 and p_ask then
    perform treadle.top_up(p_id, v_ids, p_usd);
  elsif v_found.verdict = 'ask' and p_ask then
    wait_id := treadle.ask_for_money(
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
'Reserve dollars for a claimed task; says ok, ask (with the open wait) or fail, and what is left.';

grant execute on function treadle.reserve_spend(uuid, uuid, numeric, boolean) to treadle_worker;
