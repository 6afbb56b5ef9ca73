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

revoke all on function treadle.reserve_spend(uuid, uuid, numeric, boolean) from public;
grant execute on function treadle.reserve_spend(uuid, uuid, numeric, boolean) to treadle_worker;
