-- assign_lane: set the lane of a task, its rank there, and the time of its next rank.
--
-- A deadline in the past is not an error: the task is overdue at once.
--
-- Concurrency: may create a lane, see find_lane.
-- Lock order:  lanes.
-- Raises:      TR202 unknown queue, TR203 unknown type, TR209 unknown gate.

-- gates_of: return the gate keys of a task: those it names and that of its type, in order.
--
-- Raises:      TR209 unknown gate.
create or replace function treadle.gates_of(p_type text, p_gates text[])
returns text[]
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unknown text;
begin
  if coalesce(cardinality(p_gates), 0) = 0 then
    return array['type:' || p_type];
  end if;
  select given.key
  into v_unknown
  from unnest(p_gates) as given (key)
  where treadle.is_gate(given.key) is not true
  limit 1;
  if found then
    perform treadle.raise_gate_not_found(v_unknown);
  end if;
  return treadle.sorted_names(p_gates || ('type:' || p_type));
end;
$$;

create or replace function treadle.assign_lane(
  p_task     treadle.tasks,
  p_options  treadle.task_options,
  p_type     treadle.task_types,
  p_queue    treadle.queues
)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task    treadle.tasks := p_task;
  v_lane    treadle.lanes;
  v_step    integer := -1;
  v_urgency bigint := 0;
  v_ageing  bigint := round(
    coalesce(p_options.ageing_rate, p_type.ageing_rate, p_queue.ageing_rate, 0.1) * 1000000
  );
begin
  if v_task.deadline_at is not null then
    v_step := treadle.deadline_step(v_task.deadline_at, treadle.clock());
    v_urgency := treadle.deadline_rate(v_step);
    v_task.rerank_at := treadle.deadline_at_step(v_task.deadline_at, v_step + 1);
  else
    v_task.rerank_at := null;
  end if;
  v_lane.queue := v_task.queue;
  v_lane.type := v_task.type;
  v_lane.capabilities := treadle.sorted_names(p_options.capabilities);
  v_lane.agent_id := v_task.assigned_agent;
  v_lane.ageing := v_ageing + v_urgency;
  v_lane.urgency := v_urgency;
  v_lane.gates := treadle.gates_of(v_task.type, coalesce(p_options.gates, p_type.gates));
  v_lane.project_id := case when p_queue.fair then v_task.project_id end;
  v_task.lane_id := treadle.find_lane(v_lane);
  v_task.rank := (v_task.priority - v_task.critical_path) * 1000000::bigint
    + treadle.ageing_offset(v_ageing, greatest(v_task.created_at, v_task.run_at))
    - case v_step when -1 then 0 else treadle.deadline_rank_offset(v_task.deadline_at, v_step) end;
  return v_task;
end;
$$;
