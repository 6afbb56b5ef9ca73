-- hold_references: lock the tasks that exist and that a list of new ones names or refers to.
--
-- p_too are locked with them, as one ordered set. Without any reference nothing is locked.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, by id.
-- Raises:      TR001 invalid argument.

create or replace function treadle.hold_references(p_tasks jsonb, p_dag uuid, p_too uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_ids uuid[] := array(
    select edges.depends_on
    from treadle.node_edges(
      p_tasks, array_fill(null::uuid, array[jsonb_array_length(p_tasks)]), p_dag
    ) as edges
    where edges.place is null
  ) || array(
    select tasks.id
    from treadle.tasks
    where
      tasks.dag_id = p_dag
      and tasks.name = any (
        array(select nodes.task ->> 'name' from jsonb_array_elements(p_tasks) as nodes (task))
      )
  );
begin
  if v_ids <> '{}' then
    perform treadle.hold_dependencies(v_ids || p_too);
  end if;
end;
$$;

comment on function treadle.hold_references(jsonb, uuid, uuid[]) is
'Internal: keeps the order of locks where tasks are added.';

revoke all on function treadle.hold_references(jsonb, uuid, uuid[]) from public;
