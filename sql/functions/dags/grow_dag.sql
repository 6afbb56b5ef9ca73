-- grow_dag: count new tasks into a DAG; an error when it does not exist or has ended.
--
-- Concurrency: the DAG is locked to the end of the transaction: tasks are added one caller after
--              the other, and it cannot start or end meanwhile.
-- Lock order:  dags.
-- Raises:      TR102 illegal transition, TR205 unknown DAG.

create or replace function treadle.grow_dag(p_dag uuid, p_tasks integer)
returns treadle.dags
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dag treadle.dags;
begin
  update treadle.dags
  set tasks = dags.tasks + p_tasks
  where dags.id = p_dag
  returning dags.* into v_dag;
  if not found then
    perform treadle.refuse_dag(p_dag);
  end if;
  if v_dag.ended_at is not null then
    perform treadle.refuse(
      format('DAG %s is %s: nothing can be added to it', p_dag, v_dag.status),
      jsonb_build_object('dag_id', p_dag, 'status', v_dag.status),
      'Make a new DAG; its tasks may depend on tasks of this one by their ids.',
      'TR102'
    );
  end if;
  return v_dag;
end;
$$;

comment on function treadle.grow_dag(uuid, integer) is
'Internal: makes room for tasks in a DAG that has not ended.';

revoke all on function treadle.grow_dag(uuid, integer) from public;
