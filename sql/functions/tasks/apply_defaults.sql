-- apply_defaults: fill in what a task does not say from its type, and then from its queue.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.apply_defaults(
  p_task   treadle.tasks,
  p_type   treadle.task_types,
  p_queue  treadle.queues
)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks := p_task;
begin
  v_task.priority := coalesce(v_task.priority, p_type.priority, p_queue.priority, 50);
  v_task.max_attempts := coalesce(
    v_task.max_attempts, p_type.max_attempts, p_queue.max_attempts, 3
  );
  v_task.timeout_s := coalesce(v_task.timeout_s, p_type.timeout_s, p_queue.timeout_s);
  v_task.max_cost_usd := coalesce(v_task.max_cost_usd, p_type.max_cost_usd);
  v_task.max_tokens := coalesce(v_task.max_tokens, p_type.max_tokens);
  v_task.on_budget := coalesce(v_task.on_budget, p_type.on_budget);
  v_task.capped := p_queue.max_depth is not null;
  v_task.critical_path := coalesce(v_task.critical_path, 0);
  return v_task;
end;
$$;

comment on function treadle.apply_defaults(
  treadle.tasks, treadle.task_types, treadle.queues
) is 'Internal: the task with the settings that are in force for it.';

revoke all on function treadle.apply_defaults(
  treadle.tasks, treadle.task_types, treadle.queues
) from public;
