-- tg_tasks__place: a plain insert into tasks gets its lane and rank, and the checks of enqueue.
--
-- Fires only for rows without a lane, that is, for rows that did not come through enqueue.
--
-- Concurrency: may make a lane, see find_lane.
-- Lock order:  lanes, dags.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR202 unknown
--              queue, TR203 unknown type, TR205 unknown DAG.

create or replace function treadle.tg_tasks__place()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := treadle.clock();
  v_dag   treadle.dags;
  v_type  treadle.task_types;
  v_queue treadle.queues;
begin
  perform treadle.check_task(new, v_now);
  perform treadle.check_names(new.queue, new.type);
  perform treadle.check_specs(
    array[new.spec],
    (select queues.max_spec_bytes from treadle.queues where queues.name = new.queue)
  );
  select queues.* into v_queue from treadle.queues where queues.name = new.queue;
  select task_types.* into v_type from treadle.task_types where task_types.name = new.type;
  new := treadle.apply_defaults(new, v_type, v_queue);
  new.slot := null;
  if new.status = 'ready' and new.run_at > v_now then
    new.status := 'pending';
  elsif new.status = 'ready' then
    new.status := treadle.entry_status(new.concurrency_key, null);
    new.slot := treadle.entry_slot(new.concurrency_key, null);
  end if;
  if new.dag_id is not null then
    v_dag := treadle.grow_dag(new.dag_id, 1);
    if v_dag.status = 'open' then
      new.status := 'created';
      new.slot := null;
    end if;
  end if;
  return treadle.place_task(new, v_type, v_queue);
end;
$$;

comment on function treadle.tg_tasks__place() is 'Trigger: fills lane and rank of a plain insert.';
