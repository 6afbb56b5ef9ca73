-- cancel_dag: cancel all tasks of a DAG that have not ended; returns how many.
--
-- Its dead letters are resolved as cancelled, so that the DAG ends.
--
-- Concurrency: see lock_whole_dag; tasks added in the meantime are cancelled as well.
-- Lock order:  tasks, dags, then the history.
-- Raises:      TR205 unknown DAG.

create or replace function treadle.cancel_dag(
  p_dag     uuid,
  p_reason  text default null,
  p_actor   text default null
)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_actor text := coalesce(p_actor, session_user);
  v_dag   treadle.dags;
  v_left  uuid[];
  v_dead  uuid[];
begin
  perform treadle.ensure_durable();
  v_dag := treadle.lock_whole_dag(p_dag);
  select
    array_agg(tasks.id) filter (where tasks.completed_at is null),
    array_agg(tasks.id) filter (where tasks.status = 'dead_lettered')
  into v_left, v_dead
  from treadle.tasks
  where tasks.dag_id = p_dag and tasks.status not in ('completed', 'cancelled');

  perform gone.id from treadle.cancel_tasks(v_left, p_reason, v_actor) as gone
  where v_left is not null;
  perform treadle.resolve_task(dead.id, 'cancel', '{}', v_actor, p_reason)
  from unnest(v_dead) as dead (id);
  perform treadle.propagate_ended(
    v_dead, treadle.clock(), 'dead_lettered'
  ) where v_dead is not null;

  if v_dag.status = 'open' then
    update treadle.dags
    set status = 'cancelled', ended_at = treadle.clock()
    where dags.id = p_dag;
    insert into treadle.events (kind, dag_id, actor, data)
    values ('dag.cancelled', p_dag, v_actor, jsonb_build_object('reason', p_reason));
  end if;
  return coalesce(cardinality(v_left), 0) + coalesce(cardinality(v_dead), 0);
end;
$$;

comment on function treadle.cancel_dag(uuid, text, text) is
'Cancel the remaining tasks of a DAG, with a reason.';

grant execute on function treadle.cancel_dag(uuid, text, text) to
treadle_producer, treadle_operator;
