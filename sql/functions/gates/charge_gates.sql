-- charge_gates: count claimed tasks at the gates that are limited by rate.
--
-- Concurrency: the caller holds the gates, see pass_gates.
-- Lock order:  gate_uses.
-- Raises:      nothing.

create or replace function treadle.charge_gates(p_rows tid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
  perform treadle.book_uses(array_agg(gates.key), array_agg(used.amount), p_now)
  from treadle.tasks
  inner join treadle.lanes on tasks.lane_id = lanes.id
  inner join treadle.gates on gates.key = any (lanes.gates)
  cross join lateral (select treadle.gate_need(tasks, gates.unit) as amount) as used
  where tasks.ctid = any (p_rows) and gates.unit is not null
  having count(*) > 0;
end;
$$;

comment on function treadle.charge_gates(tid[], timestamptz) is
'Internal: count claimed tasks at the gates that are limited by rate.';

revoke all on function treadle.charge_gates(tid[], timestamptz) from public;
