-- add_dependency: make a task that has not started wait for another task.
--
-- select treadle.add_dependency(deploy, review);
--
-- Returns true if the dependency is new. With p_optional the task also continues if the other one
-- is cancelled.
--
-- Concurrency: both tasks are locked in id order; for cycles see add_edges.
-- Lock order:  tasks, dags, locks.
-- Raises:      TR102 illegal transition, TR103 cycle, TR201 task not found.

create or replace function treadle.add_dependency(
  p_task        uuid,
  p_depends_on  uuid,
  p_optional    boolean default false
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks;
  v_left integer;
  v_row  tid;
begin
  perform treadle.ensure_durable();
  perform treadle.lock_dependencies(array[p_task, p_depends_on]);
  if not exists (select from treadle.tasks where tasks.id = p_depends_on) then
    perform treadle.raise_invalid_transition(p_depends_on, 'pending', 'add_dependency');
  end if;
  if exists (
    select from treadle.dependencies
    where dependencies.task_id = p_task and dependencies.depends_on = p_depends_on
  ) then
    return false;
  end if;
  select tasks.* into v_task from treadle.tasks where tasks.id = p_task;
  if v_task.status is distinct from 'created' and v_task.status is distinct from 'pending'
    and v_task.status is distinct from 'ready' then
    perform treadle.raise_invalid_transition(p_task, 'pending', 'add_dependency');
  end if;

  v_left := treadle.add_edges(
    p_task, array[p_depends_on], p_optional,
    coalesce(
      (select dags.on_dead_letter from treadle.dags where dags.id = v_task.dag_id), 'wait'
    ),
    treadle.clock()
  );
  update treadle.tasks
  set
    blocked_count = tasks.blocked_count + v_left,
    status = case when tasks.status = 'ready' then 'pending' else tasks.status end,
    slot = null,
    -- A result from before this dependency is no longer accepted.
    last_token = null
  where tasks.id = p_task and v_left > 0
  returning tasks.ctid into v_row;
  if v_row is not null and v_task.status = 'ready' then
    perform treadle.audit_tasks(array[v_row], 'deferred', null);
  end if;
  perform treadle.request_slots(array[v_task.concurrency_key])
  where v_row is not null and v_task.slot is not null;
  return true;
end;
$$;

comment on function treadle.add_dependency(uuid, uuid, boolean) is
'Make a task wait for another one.';

grant execute on function treadle.add_dependency(uuid, uuid, boolean) to
treadle_producer, treadle_worker, treadle_operator;
