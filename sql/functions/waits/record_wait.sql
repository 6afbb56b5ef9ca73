-- record_wait: write down what happened to a wait.
--
-- Concurrency: none; the caller holds the wait.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.record_wait(
  p_wait   treadle.waits,
  p_what   text,
  p_actor  text,
  p_data   jsonb
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  insert into treadle.events (at, kind, task_id, dag_id, queue, actor, data)
  select
    treadle.clock(), 'wait.' || p_what, tasks.id, tasks.dag_id, tasks.queue, p_actor,
    jsonb_build_object('wait_id', p_wait.id, 'name', p_wait.name, 'kind', p_wait.kind) || p_data
  from treadle.tasks
  where tasks.id = p_wait.task_id
$$;

comment on function treadle.record_wait(treadle.waits, text, text, jsonb) is
'Internal: an event about a wait: opened, answered, expired, escalated.';

revoke all on function treadle.record_wait(treadle.waits, text, text, jsonb) from public;
