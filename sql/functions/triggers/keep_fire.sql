-- keep_fire: write down what a trigger made of an event; a later try takes the place of a failure.
--
-- Concurrency: the pair of trigger and event is unique; who removes the trigger waits.
-- Lock order:  triggers (shared), trigger_fires.
-- Raises:      nothing.

create or replace function treadle.keep_fire(p_fire treadle.trigger_fires)
returns treadle.trigger_fires
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.trigger_fires (
    trigger_id, event_id, fired_at, verdict, task_id, dag_id, depth, problem
  )
  select
    triggers.id, p_fire.event_id, p_fire.fired_at, p_fire.verdict, p_fire.task_id,
    p_fire.dag_id, p_fire.depth, left(p_fire.problem, 1000)
  from treadle.triggers
  where triggers.id = p_fire.trigger_id
  for key share
  on conflict (trigger_id, event_id) do update
  set
    fired_at = excluded.fired_at, verdict = excluded.verdict, task_id = excluded.task_id,
    dag_id = excluded.dag_id, depth = excluded.depth, problem = excluded.problem
  returning trigger_fires.*
$$;

comment on function treadle.keep_fire(treadle.trigger_fires) is
'Internal: the record of a trigger and an event.';

revoke all on function treadle.keep_fire(treadle.trigger_fires) from public;
