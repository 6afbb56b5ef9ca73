-- dag_status: the state of a DAG, for who waits for its end.
--
-- Concurrency: reads one row.
-- Lock order:  none.
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
    perform treadle.refuse_dag(p_dag);
  end if;
  return v_status;
end;
$$;

comment on function treadle.dag_status(uuid) is
'open, running, failed, completed or cancelled.';

revoke all on function treadle.dag_status(uuid) from public;
grant execute on function treadle.dag_status(uuid) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
