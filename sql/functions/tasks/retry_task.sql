-- retry_task: decide about a dead letter or a cancelled task, or retry a task before its delay is
-- over.
--
-- select treadle.retry_task(id);
-- select treadle.retry_task(id, 'cancel', p_note => 'obsolete');
-- select treadle.retry_task(id, 'modify_and_retry', '{"spec": {"url": "..."}, "priority": 10}');
--
-- The new round has as many attempts as the task was given; attempt numbers continue.
--
-- Cancelling a dead letter also cancels its dependents.
--
-- Concurrency: the row is locked, then checked.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      TR001 invalid argument, TR102 illegal transition, TR201 task not found.

-- check_retryable: reject a retry of tasks that depend on a cancelled task.
--
-- Concurrency: the caller has locked the tasks.
-- Raises:      TR102 illegal transition.
create or replace function treadle.check_retryable(p_ids uuid[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_stuck record;
begin
  select tasks.id, tasks.dag_id, gone.id as gone, gone.name
  into v_stuck
  from unnest(p_ids) as given (id)
  inner join treadle.tasks on given.id = tasks.id
  inner join treadle.dependencies on tasks.id = dependencies.task_id
  inner join treadle.tasks as gone on dependencies.depends_on = gone.id
  where
    tasks.completed_at is null and dependencies.met_at is null and gone.status = 'cancelled'
  order by tasks.id, gone.id
  limit 1;
  if found then
    perform treadle.raise_error(
      format(
        'task %s depends on %s, which was cancelled', v_stuck.id,
        coalesce(v_stuck.name, v_stuck.gone::text)
      ),
      jsonb_build_object('task_id', v_stuck.id, 'depends_on', v_stuck.gone),
      case
        when v_stuck.dag_id is null then 'Retry that task first.'
        else format('Retry that task first, or all: select treadle.retry_dag(%L)', v_stuck.dag_id)
      end,
      'TR102'
    );
  end if;
end;
$$;

create or replace function treadle.retry_task(
  p_id          uuid,
  p_resolution  text default 'retry',
  p_changes     jsonb default '{}',
  p_reviewer    text default null,
  p_note        text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := treadle.clock();
  v_was treadle.tasks;
  v_to  text;
begin
  perform treadle.check_decision(
    p_resolution, p_changes, coalesce(p_reviewer, session_user), p_note
  );
  perform treadle.ensure_durable();
  if p_resolution = 'cancel' then
    perform treadle.lock_downstream(array[p_id]);
  else
    -- Includes its dependencies, so that a cancelled dependency is noticed.
    perform treadle.lock_tasks(p_id || treadle.dependencies_of(array[p_id]));
  end if;
  select tasks.* into v_was from treadle.tasks where tasks.id = p_id;
  v_to := treadle.resolve_task(p_id, p_resolution, p_changes, p_reviewer, p_note);
  if v_to = 'cancelled' then
    perform treadle.propagate_ended(array[p_id], v_now, v_was.status);
    return v_to;
  end if;
  perform treadle.check_retryable(array[p_id]);
  if v_was.dag_id is not null then
    perform treadle.update_dag_counters(
      array[v_was.dag_id], array[v_was.status], array[null::text], v_now
    );
  end if;
  return v_to;
end;
$$;

comment on function treadle.retry_task(uuid, text, jsonb, text, text) is
'Resolve a dead letter (retry, cancel, modify_and_retry), or retry a cancelled or retrying task.';

grant execute on function treadle.retry_task(uuid, text, jsonb, text, text) to treadle_operator;
