-- prepare_task: turn the options of a new task into a checked row with its lane and rank.
--
-- Many tasks of one kind are prepared once. The task's own value wins over its type's, and that
-- over its queue's. Waiting counts from run_at where there is one. `define` makes a type or queue
-- that nobody has declared: code that has the handler knows. Work waits for its dispatcher.
--
-- Concurrency: may make a lane, see find_lane.
-- Lock order:  lanes.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type.

create or replace function treadle.prepare_task(p_options jsonb, p_now timestamptz)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task  treadle.tasks := treadle.read_options(p_options, p_now);
  v_queue treadle.queues;
  v_type  treadle.task_types;
  v_hold  boolean;
begin
  v_task.queue := coalesce(v_task.queue, 'default');
  v_hold := v_task.queue = 'work' or coalesce(v_task.status = 'created', false);
  if p_options ? 'define' and not treadle.are_names(v_task.queue, v_task.type) then
    perform treadle.declare_types(
      jsonb_build_object(v_task.type, p_options -> 'define'), array[v_task.queue]
    );
  end if;
  perform treadle.check_names(v_task.queue, v_task.type);
  select queues.* into v_queue from treadle.queues where queues.name = v_task.queue;
  select task_types.* into v_type from treadle.task_types where task_types.name = v_task.type;

  if p_options ?| array['urgency', 'tier', 'project', 'concurrency_limit'] then
    v_task := treadle.apply_words(v_task, p_options);
  end if;
  v_task := treadle.apply_defaults(v_task, v_type, v_queue);
  perform treadle.check_task(v_task, p_now);

  v_task.created_at := p_now;
  v_task.status := case
    when v_hold then 'created'
    when v_task.run_at > p_now then 'pending'
    else treadle.entry_status(v_task.concurrency_key, null)
  end;
  if not v_hold and not coalesce(v_task.run_at > p_now, false) then
    v_task.slot := treadle.entry_slot(v_task.concurrency_key, null);
  end if;
  return treadle.place_task(v_task, v_type, v_queue);
end;
$$;

comment on function treadle.prepare_task(jsonb, timestamptz) is
'Internal: checks the options of a new task and fills in the defaults, the lane and the rank.';

revoke all on function treadle.prepare_task(jsonb, timestamptz) from public;
