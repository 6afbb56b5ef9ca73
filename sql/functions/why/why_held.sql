-- why_held: somebody has to let a task go: it is held, or its DAG is not started.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_held(p_task treadle.tasks)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dag text;
begin
  if p_task.status <> 'created' then
    return;
  end if;

  select dags.name
  into v_dag
  from treadle.dags
  where dags.id = p_task.dag_id and dags.status = 'open';
  if found then
    sentence := format(
      'DAG %s is not started: start it with: treadle dag start %s', v_dag,
      right(p_task.dag_id::text, 8)
    );
    reason := 'dag_open';
    detail := jsonb_build_object('dag_id', p_task.dag_id, 'dag', v_dag);
  else
    sentence := format(
      'held back: release it with: select treadle.unhold_tasks(''{%s}'')', p_task.id
    );
    reason := 'held';
    detail := jsonb_build_object('task_id', p_task.id);
  end if;
  return next;
end;
$$;

comment on function treadle.why_held(treadle.tasks) is
'Internal: that a task was enqueued with hold, or that its DAG is still being built.';

revoke all on function treadle.why_held(treadle.tasks) from public;
