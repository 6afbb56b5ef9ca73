-- read_dag: how far a DAG is and what it cost, for its producer.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR205 unknown DAG.

create or replace function treadle.read_dag(p_dag uuid)
returns table (
  id uuid, name text, status text, tasks integer, completed integer, cancelled integer,
  dead_lettered integer, cost_usd numeric, duration_s double precision, open_waits integer
)
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select
    dag.id, dag.name, dag.status, dag.tasks, dag.completed, dag.cancelled, dag.dead_lettered,
    dag.cost_usd, dag.duration_s::double precision, dag.open_waits::integer
  from treadle.dag_overview as dag
  where dag.id = p_dag;
  if not found then
    perform treadle.refuse_dag(p_dag);
  end if;
end;
$$;

comment on function treadle.read_dag(uuid) is
'State, counts, cost and duration of a DAG.';

revoke all on function treadle.read_dag(uuid) from public;
grant execute on function treadle.read_dag(uuid) to
treadle_producer, treadle_worker, treadle_operator;
