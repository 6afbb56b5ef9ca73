-- task_named: the task that a reference means: one of the DAG by name, or any by its id.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.task_named(p_ref text, p_dag uuid)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_uuid constant text := '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$';
  v_id uuid;
begin
  if p_ref ~ c_uuid then
    select tasks.id into v_id from treadle.tasks where tasks.id = p_ref::uuid;
  elsif p_dag is not null then
    select tasks.id into v_id from treadle.tasks where tasks.dag_id = p_dag and tasks.name = p_ref;
  end if;
  if v_id is null then
    perform treadle.refuse(
      format('there is no task %s to depend on', coalesce(quote_literal(left(p_ref, 100)), 'null')),
      jsonb_build_object('argument', 'after', 'task', left(p_ref, 200)),
      'Name a task of the same DAG, or give the id of any task.'
    );
  end if;
  return v_id;
end;
$$;

comment on function treadle.task_named(text, uuid) is
'Internal: finds the task behind a name or an id.';

revoke all on function treadle.task_named(text, uuid) from public;
