-- tg_tasks__prepare: set lane and rank of a row inserted directly into tasks, and check it as
-- enqueue does.
--
-- It fires only for rows without a lane, that is, rows that did not come from an enqueue function.
--
-- Concurrency: may create a lane, see find_lane.
-- Lock order:  lanes, dags.
-- Raises:      TR001 invalid argument, TR002 too large, TR102 illegal transition, TR202 unknown
--              queue, TR203 unknown type, TR205 unknown DAG.

create or replace function treadle.tg_tasks__prepare()
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
  v_rest  treadle.task_options;
begin
  perform treadle.check_options(jsonb_object_agg(given.key, given.value), 'task')
  from jsonb_each(to_jsonb(new)) as given
  inner join treadle.task_fields on given.key = task_fields.name
  where 'task' = any (task_fields.uses);
  select queues.* into v_queue from treadle.queues where queues.name = new.queue;
  select task_types.* into v_type from treadle.task_types where task_types.name = new.type;
  if v_queue.name is null or v_type.name is null then
    perform treadle.check_names(new.queue, new.type);
  end if;
  perform treadle.check_specs(array[new.spec], v_queue.max_spec_bytes);
  new := treadle.apply_defaults(new, v_type, v_queue);
  v_rest.max_tokens := v_type.max_tokens;
  v_rest.on_budget := v_type.on_budget;
  new.has_options := not v_rest is null;
  if new.has_options then
    v_rest.task_id := new.id;
    insert into treadle.task_options select v_rest.* on conflict (task_id) do nothing;
  end if;
  new.slot := null;
  if new.status = 'ready' and new.run_at > v_now then
    new.status := 'pending';
  elsif new.status = 'ready' then
    new.status := treadle.entry_status(new.concurrency_key, null);
    new.slot := treadle.entry_slot(new.concurrency_key, null);
  end if;
  if new.dag_id is not null then
    v_dag := treadle.count_new_dag_tasks(new.dag_id, 1);
    if v_dag.status = 'open' then
      new.status := 'created';
      new.slot := null;
    end if;
  end if;
  return treadle.assign_lane(new, v_rest, v_type, v_queue);
end;
$$;

comment on function treadle.tg_tasks__prepare() is 'Trigger: sets lane and rank of inserted rows.';
