-- tg_tasks__place: a plain insert into tasks gets its lane and rank, and the checks of enqueue.
--
-- Fires only for rows without a lane, that is, for rows that did not come through enqueue.
--
-- Concurrency: may make a lane, see lane_of.
-- Lock order:  lanes, dags.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR202 unknown
--              queue, TR203 unknown type, TR205 unknown DAG.

create or replace function treadle.tg_tasks__place()
returns trigger
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_now timestamptz := treadle.clock();
  v_dag treadle.dags;
begin
  perform treadle.check_task(new, v_now);
  perform treadle.check_names(new.queue, new.type);
  perform treadle.check_specs(
    array[new.spec],
    (select queues.max_spec_bytes from treadle.queues where queues.name = new.queue)
  );
  if new.status = 'ready' and new.run_at > v_now then
    new.status := 'pending';
  end if;
  if new.dag_id is not null then
    v_dag := treadle.grow_dag(new.dag_id, 1);
    new.status := case when v_dag.status = 'open' then 'created' else new.status end;
  end if;
  return treadle.place_task(
    new,
    (
      select coalesce(task_types.ageing_rate, queues.ageing_rate, 0.1)
      from treadle.queues
      cross join treadle.task_types
      where queues.name = new.queue and task_types.name = new.type
    )
  );
end;
$$;

comment on function treadle.tg_tasks__place() is 'Trigger: fills lane and rank of a plain insert.';

revoke all on function treadle.tg_tasks__place() from public;
