-- enqueue_template: enqueue the task or the DAG of a schedule for one nominal time.
--
-- The work says where it comes from: source is schedule, source_job its name. Not created means
-- that the template has a key and that the work with this key was there. What is for queue `push`
-- is submitted to it as everything is.
--
-- Concurrency: part of the caller's transaction.
-- Lock order:  as enqueue_tasks or create_dag.
-- Raises:      what those raise.

create or replace function treadle.enqueue_template(
  p_schedule   treadle.schedules,
  p_nominal    timestamptz,
  out task_id  uuid,
  out dag_id   uuid,
  out created  boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_template jsonb := treadle.filled_template(p_schedule, p_nominal);
  v_task     jsonb := v_template -> 'task';
  v_dag      jsonb := v_template -> 'dag';
  v_author   text := p_schedule.created_by;
  v_origin   jsonb := jsonb_strip_nulls(
    jsonb_build_object(
      'source', 'schedule', 'source_job', p_schedule.name,
      'run_at', treadle.run_moment(p_schedule, p_nominal)
    )
  );
begin
  if v_task ->> 'queue' = 'push' then
    v_task := treadle.push_template(v_task);
  end if;
  if v_dag is null then
    select made.id, made.created
    into task_id, created
    from treadle.enqueue_tasks(
      jsonb_build_array(v_origin || jsonb_build_object('created_by', v_author) || v_task)
    ) as made;
    return;
  end if;

  select made.dag_id, made.created
  into dag_id, created
  from treadle.create_dag(
    jsonb_build_object('name', p_schedule.name, 'created_by', v_author)
    || v_dag
    || jsonb_build_object(
      'defaults', v_origin || coalesce(v_dag -> 'defaults', '{}'),
      'meta', jsonb_build_object('schedule', p_schedule.name, 'nominal_at', p_nominal)
      || coalesce(v_dag -> 'meta', '{}')
    )
  ) as made;
end;
$$;

comment on function treadle.enqueue_template(treadle.schedules, timestamptz) is
'Internal: makes what a schedule is there for.';

revoke all on function treadle.enqueue_template(treadle.schedules, timestamptz) from public;
