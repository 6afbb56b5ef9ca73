-- record_spend: count what a running task has paid for, each call once.
--
-- select treadle.record_spend(id, token, '[{"call_id": "msg_01", "usd": 0.012}]');
--
-- A call whose id is in the ledger already is free. It also renews the lease.
--
-- Concurrency: see hold_claim; calls of one task are counted one after the other.
-- Lock order:  tasks, spend.
-- Raises:      TR001 invalid argument, TR101 claim lost.

create or replace function treadle.record_spend(p_id uuid, p_token uuid, p_calls jsonb)
returns numeric
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
as $$
declare
  v_task treadle.tasks := treadle.hold_claim(p_id, p_token);
begin
  return v_task.cost_usd + treadle.add_spend(v_task, null, p_calls);
end;
$$;

comment on function treadle.record_spend(uuid, uuid, jsonb) is
'Count paid calls of a claimed task, each once by its call_id; returns its cost so far.';

revoke all on function treadle.record_spend(uuid, uuid, jsonb) from public;
grant execute on function treadle.record_spend(uuid, uuid, jsonb) to treadle_worker;
