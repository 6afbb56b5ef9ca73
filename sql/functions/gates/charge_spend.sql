-- charge_spend: count what a task spent beyond what its claim was charged for.
--
-- A claim is charged what its task may still spend; a task that does not say is charged
-- as it spends. Called after the task was written, with what is new of its costs.
--
-- Concurrency: the caller holds the task.
-- Lock order:  gates by key, after tasks and budgets.
-- Raises:      nothing.

create or replace function treadle.charge_spend(p_task uuid, p_usd numeric, p_tokens numeric)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_task   treadle.tasks;
  v_usd    numeric;
  v_tokens numeric;
  v_keys   text[];
begin
  select tasks.* into v_task from treadle.tasks where tasks.id = p_task;
  -- What is new of it, and lies above what the claim was charged for.
  v_usd := least(p_usd, v_task.cost_usd - coalesce(v_task.max_cost_usd, 0));
  v_tokens := least(
    p_tokens, v_task.input_tokens + v_task.output_tokens - coalesce(v_task.max_tokens, 0)
  );
  v_keys := treadle.lock_gates(
    array(
      select gates.key
      from treadle.lanes
      inner join treadle.gates on gates.key = any (lanes.gates)
      where
        lanes.id = v_task.lane_id
        and ((gates.unit = 'usd' and v_usd > 0) or (gates.unit = 'tokens' and v_tokens > 0))
    ),
    true
  );
  perform treadle.book_uses(
    array_agg(gates.key),
    array_agg(case gates.unit when 'usd' then v_usd else v_tokens end), treadle.clock()
  )
  from treadle.gates
  where gates.key = any (v_keys)
  having count(*) > 0;
end;
$$;

comment on function treadle.charge_spend(uuid, numeric, numeric) is
'Internal: what is spent is counted, never refused; the next claim finds less room.';

revoke all on function treadle.charge_spend(uuid, numeric, numeric) from public;
