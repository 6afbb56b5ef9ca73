-- place_task: give a task its lane and its rank there.
--
-- Concurrency: may make a lane, see lane_of.
-- Lock order:  lanes.
-- Raises:      TR202 unknown queue, TR203 unknown type.

create or replace function treadle.place_task(p_task treadle.tasks, p_ageing_rate numeric)
returns treadle.tasks
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_task   treadle.tasks := p_task;
  v_ageing bigint := round(coalesce(p_task.ageing_rate, p_ageing_rate) * 1000000);
begin
  v_task.lane_id := treadle.lane_of(
    v_task.queue, v_task.type, v_task.capabilities, v_task.assigned_agent, v_ageing
  );
  v_task.rank := v_task.priority * 1000000
    + treadle.rank_shift(v_ageing, greatest(v_task.created_at, v_task.run_at));
  return v_task;
end;
$$;

comment on function treadle.place_task(treadle.tasks, numeric) is
'Internal: finds the lane of a task and computes its rank.';

revoke all on function treadle.place_task(treadle.tasks, numeric) from public;
