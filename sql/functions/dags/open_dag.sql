-- open_dag: begin a DAG that is filled piece by piece; its tasks are held until start_dag.
--
-- select treadle.open_dag('Release 12', '{"on_dead_letter": "cancel"}');
--
-- With a key, a repeat returns the DAG that was made.
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
  perform treadle.keep_durable();
  v_made := treadle.make_dag(p_name, coalesce(p_options, '{}'), 'open', 0);
  return (v_made.dag).id;
end;
$$;

comment on function treadle.open_dag(text, jsonb) is
'Make a DAG without tasks: add_task fills it, start_dag lets it run.';

grant execute on function treadle.open_dag(text, jsonb) to treadle_producer, treadle_worker;
