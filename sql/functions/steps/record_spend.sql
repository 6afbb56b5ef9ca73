-- record_spend: count what a running task has paid for, each call once.
--
-- select treadle.record_spend(id, token, '[{"call_id": "msg_01", "usd": 0.012}]');
--
-- A call whose id is in the ledger already is free. It also renews the lease. Says what the task
-- has cost, what it may cost, what is left for it, and whether it may go on: ok, or what to do now
-- that a limit is passed: ask or fail, see reserve_spend.
--
-- Concurrency: see hold_claim; calls of one task are counted one after the other.
-- Lock order:  tasks, spend, budgets by id, reservations.
-- Raises:      TR001 invalid argument, TR101 claim lost.

create or replace function treadle.record_spend(
  p_id     uuid,
  p_token  uuid,
  p_calls  jsonb,
  out cost_usd numeric,
  out max_cost_usd numeric,
  out left_usd numeric,
  out verdict text,
  out reason text
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_task  treadle.tasks := treadle.hold_claim(p_id, p_token);
  v_found record;
begin
  perform treadle.add_spend(v_task, null, p_calls);
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id;
  v_found := treadle.budget_verdict(v_task, 0);
  cost_usd := v_task.cost_usd;
  max_cost_usd := v_task.max_cost_usd;
  left_usd := v_found.left_usd;
  verdict := v_found.verdict;
  reason := v_found.reason;
end;
$$;

comment on function treadle.record_spend(uuid, uuid, jsonb) is
'Count paid calls of a claimed task, each once by its call_id; says its cost and what is left.';

revoke all on function treadle.record_spend(uuid, uuid, jsonb) from public;
grant execute on function treadle.record_spend(uuid, uuid, jsonb) to treadle_worker;
