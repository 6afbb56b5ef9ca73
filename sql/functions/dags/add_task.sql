-- add_task: add one task to a DAG that has not ended.
--
-- select treadle.add_task(dag, '{"name": "test", "type": "test", "after": ["build"]}');
--
-- Concurrency: see add_tasks.
-- Lock order:  tasks, lanes, dags.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR103 cycle,
--              TR202 unknown queue, TR203 unknown type, TR205 unknown DAG.

create or replace function treadle.add_task(p_dag uuid, p_task jsonb)
returns uuid
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select added.id from treadle.add_tasks(p_dag, jsonb_build_array(p_task)) as added
$$;

comment on function treadle.add_task(uuid, jsonb) is
'Add a task with its dependencies to a DAG.';

revoke all on function treadle.add_task(uuid, jsonb) from public;
grant execute on function treadle.add_task(uuid, jsonb) to treadle_producer, treadle_worker;
