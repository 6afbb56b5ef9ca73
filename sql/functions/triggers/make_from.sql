-- make_from: enqueue what a template that is filled in describes: a task, or a DAG.
--
-- Its tasks say where they come from: source is trigger, source_job is the trigger's name.
--
-- Concurrency: see enqueue_tasks and create_dag.
-- Lock order:  tasks, lanes, dags.
-- Raises:      what enqueue_tasks and create_dag raise.

create or replace function treadle.make_from(
  p_trigger     treadle.triggers,
  p_filled      jsonb,
  out task_id   uuid,
  out dag_id    uuid
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_origin jsonb := jsonb_build_object('source', 'trigger', 'source_job', p_trigger.name);
  v_author jsonb := jsonb_build_object('created_by', p_trigger.created_by);
  v_dag    jsonb := treadle.without_nulls(p_filled -> 'dag');
begin
  if p_filled ? 'task' then
    select made.id
    into task_id
    from treadle.enqueue_tasks(
      jsonb_build_array(v_author || treadle.without_nulls(p_filled -> 'task') || v_origin)
    ) as made;
    return;
  end if;

  select made.dag_id
  into dag_id
  from treadle.create_dag(
    v_author || v_dag || jsonb_build_object(
      'tasks',
      (
        select jsonb_agg(
          treadle.without_nulls(node.task) || v_origin order by node.at
        )
        from jsonb_array_elements(v_dag -> 'tasks') with ordinality as node (task, at)
      )
    )
  ) as made;
end;
$$;

comment on function treadle.make_from(treadle.triggers, jsonb) is
'Internal: the task or the DAG of a trigger, enqueued.';

revoke all on function treadle.make_from(treadle.triggers, jsonb) from public;
