-- refuse_dag: say that there is no such DAG.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR205 unknown DAG.

create or replace function treadle.refuse_dag(p_dag uuid)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.refuse(
    format('there is no DAG %s', coalesce(p_dag::text, 'null')),
    jsonb_build_object('dag_id', p_dag),
    'List them: select * from treadle.dag_overview order by id desc limit 20',
    'TR205'
  );
end;
$$;

comment on function treadle.refuse_dag(uuid) is 'Internal: raises for an unknown DAG.';

revoke all on function treadle.refuse_dag(uuid) from public;
