-- make_dag: store a DAG without tasks; a key that is taken gives the DAG that has it.
--
-- Concurrency: two sessions with the same key: the second waits for the first, then gets its DAG.
-- Lock order:  dags.
-- Raises:      TR001 invalid argument.

create or replace function treadle.make_dag(
  p_name     text,
  p_options  jsonb,
  p_status   text,
  p_tasks    integer,
  out dag    treadle.dags,
  out created boolean
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.check_settings(
    p_options,
    array['key', 'on_dead_letter', 'budget_usd', 'project_id', 'created_by', 'meta']
  );
  begin
    dag := jsonb_populate_record(null::treadle.dags, p_options - 'key');
    dag.name := p_name;
    insert into treadle.dags (
      name, status, on_dead_letter, tasks, project_id, idempotency_key, created_by,
      started_at, meta
    )
    values (
      p_name, p_status, coalesce(dag.on_dead_letter, 'wait'), p_tasks, dag.project_id,
      p_options ->> 'key', coalesce(dag.created_by, session_user),
      case when p_status = 'running' then treadle.clock() end, coalesce(dag.meta, '{}')
    )
    on conflict (idempotency_key) where idempotency_key is not null do nothing
    returning dags.* into dag;
    created := found;
    if created and p_options ->> 'budget_usd' is not null then
      perform treadle.give_budget('dag', dag.id::text, (p_options ->> 'budget_usd')::numeric);
    end if;
  exception
    when data_exception or check_violation or not_null_violation then
      perform treadle.refuse(
        format('this DAG cannot be made: %s', sqlerrm),
        jsonb_build_object('argument', 'dag'),
        'It needs a name of 1 to 1000 bytes; on_dead_letter is wait, cancel or continue; '
        || 'budget_usd is 0 or more; a key has 1 to 200 bytes.'
      );
  end;

  if not created then
    select dags.* into dag from treadle.dags where dags.idempotency_key = p_options ->> 'key';
  elsif p_status = 'running' then
    insert into treadle.events (kind, dag_id, actor, data)
    values (
      'dag.started', dag.id, dag.created_by,
      jsonb_build_object('name', dag.name, 'tasks', dag.tasks)
    );
  end if;
end;
$$;

comment on function treadle.make_dag(text, jsonb, text, integer) is
'Internal: checks the options of a DAG and stores it.';

revoke all on function treadle.make_dag(text, jsonb, text, integer) from public;
