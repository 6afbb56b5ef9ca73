-- open_dag: create a DAG without tasks; tasks added to it are held until start_dag.
--
-- select treadle.open_dag('Release 12', '{"on_dead_letter": "cancel"}');
--
-- With a key, a repeated call returns the existing DAG.
--
-- Concurrency: see make_dag.
-- Lock order:  dags.
-- Raises:      TR001 invalid argument.

create or replace function treadle.open_dag(p_name text, p_options jsonb default '{}')
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_made record;
begin
  perform treadle.ensure_durable();
  v_made := treadle.make_dag(p_name, coalesce(p_options, '{}'), 'open', 0);
  return (v_made.dag).id;
end;
$$;

comment on function treadle.open_dag(text, jsonb) is
'Create a DAG without tasks: add_task adds tasks, and start_dag starts it.';

grant execute on function treadle.open_dag(text, jsonb) to treadle_producer, treadle_worker;
