-- retry_dag: retry the dead letters and the cancelled tasks of a DAG.
--
-- Completed tasks stay completed. Returns how many tasks are retried.
--
-- Concurrency: the tasks are locked in id order; a task that changed in the meantime is skipped.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      TR102 illegal transition, TR205 unknown DAG.

create or replace function treadle.retry_dag(
  p_dag    uuid,
  p_actor  text default null,
  p_note   text default null
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_ids uuid[] := array(
    select tasks.id from treadle.tasks
    where tasks.dag_id = p_dag and tasks.status in ('dead_lettered', 'cancelled')
  );
  v_was text[];
begin
  if not exists (select from treadle.dags where dags.id = p_dag) then
    perform treadle.raise_dag_not_found(p_dag);
  end if;
  perform treadle.ensure_durable();
  perform treadle.lock_tasks(v_ids || treadle.dependencies_of(v_ids));
  -- Only tasks that have not changed since.
  select array_agg(tasks.id order by tasks.id), array_agg(tasks.status order by tasks.id)
  into v_ids, v_was
  from treadle.tasks
  where tasks.id = any (v_ids) and tasks.status in ('dead_lettered', 'cancelled');
  if v_ids is null then
    return 0;
  end if;

  perform treadle.resolve_task(
    wanted.id, 'retry', '{}', coalesce(p_actor, session_user), p_note
  )
  from unnest(v_ids) as wanted (id);
  perform treadle.check_retryable(v_ids);
  -- Counted once for all tasks: each update would add a row version that the next one has to skip.
  perform treadle.update_dag_counters(
    array_fill(p_dag, array[cardinality(v_ids)]), v_was,
    array_fill(null::text, array[cardinality(v_ids)]), treadle.clock()
  );
  return cardinality(v_ids);
end;
$$;

comment on function treadle.retry_dag(uuid, text, text) is
'Retry all dead-lettered and cancelled tasks of a DAG.';

grant execute on function treadle.retry_dag(uuid, text, text) to treadle_operator;
