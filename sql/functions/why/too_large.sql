-- too_large: the gate behind which a claim puts a task that needs more than a whole limit.
--
-- See set_aside. Null for a task that fits all limits.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.too_large(p_task treadle.tasks)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select format('over:%s:%s', gates.amount, gates.key)
  from treadle.lanes
  inner join treadle.gates on gates.key = any (lanes.gates)
  where
    lanes.id = p_task.lane_id and gates.amount < treadle.gate_need(p_task, gates.unit)
  order by gates.key
  limit 1
$$;

comment on function treadle.too_large(treadle.tasks) is
'Internal: names what keeps a task back that can never start.';

revoke all on function treadle.too_large(treadle.tasks) from public;
