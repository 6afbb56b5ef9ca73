-- read_dag: return the progress and the cost of a DAG, for its producer.
--
-- Raises:      TR205 unknown DAG.

-- raise_dag_not_found: raise the error for a DAG that does not exist.
--
-- Raises:      TR205 unknown DAG.
create or replace function treadle.raise_dag_not_found(p_dag uuid)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.raise_error(
    format('there is no DAG %s', coalesce(p_dag::text, 'null')),
    jsonb_build_object('dag_id', p_dag),
    'To list DAGs: select * from treadle.dag_overview order by id desc limit 20',
    'TR205'
  );
end;
$$;

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
    perform treadle.raise_dag_not_found(p_dag);
  end if;
end;
$$;

comment on function treadle.read_dag(uuid) is
'State, counts, cost and duration of a DAG.';

-- dag_status: return the state of a DAG, to wait for its end.
--
-- Raises:      TR205 unknown DAG.
create or replace function treadle.dag_status(p_dag uuid)
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_status text;
begin
  select dags.status into v_status from treadle.dags where dags.id = p_dag;
  if not found then
    perform treadle.raise_dag_not_found(p_dag);
  end if;
  return v_status;
end;
$$;

comment on function treadle.dag_status(uuid) is
'open, running, failed, completed or cancelled.';

grant execute on function treadle.read_dag(uuid) to
treadle_producer, treadle_worker, treadle_operator;
grant execute on function treadle.dag_status(uuid) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
