-- cancel_dag: cancel all tasks of a DAG that have not ended; returns how many.
--
-- Its dead letters are resolved as cancelled, so that it ends.
--
-- Concurrency: see cancel_tasks; tasks that are added meanwhile are cancelled as well.
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
set search_path = ''
set jit = off
set enable_seqscan = off
as $$
declare
  v_actor text := coalesce(p_actor, session_user);
  v_gone  integer := 0;
  v_left  uuid[];
begin
  perform treadle.keep_durable();
  if not exists (select from treadle.dags where dags.id = p_dag) then
    perform treadle.refuse_dag(p_dag);
  end if;
  loop
    v_left := array(
      select tasks.id from treadle.tasks
      where tasks.dag_id = p_dag and tasks.completed_at is null
    );
    exit when v_left = '{}';
    perform gone.id from treadle.cancel_tasks(v_left, p_reason, v_actor) as gone;
    v_gone := v_gone + cardinality(v_left);
  end loop;

  v_left := array(
    select tasks.id from treadle.tasks
    where tasks.dag_id = p_dag and tasks.status = 'dead_lettered'
    order by tasks.id
  );
  perform treadle.retry_task(dead.id, 'cancel', '{}', v_actor, p_reason)
  from unnest(v_left) as dead (id);

  update treadle.dags
  set status = 'cancelled', ended_at = treadle.clock()
  where dags.id = p_dag and dags.status = 'open';
  if found then
    insert into treadle.events (kind, dag_id, actor, data)
    values ('dag.cancelled', p_dag, v_actor, jsonb_build_object('reason', p_reason));
  end if;
  return v_gone + cardinality(v_left);
end;
$$;

comment on function treadle.cancel_dag(uuid, text, text) is
'Cancel what is left of a DAG, with a reason that is kept.';

revoke all on function treadle.cancel_dag(uuid, text, text) from public;
grant execute on function treadle.cancel_dag(uuid, text, text) to
treadle_producer, treadle_operator;
