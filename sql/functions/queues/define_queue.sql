-- define_queue: create a queue or change its settings; settings that are not given stay as they
-- are.
--
-- select treadle.define_queue('night', '{"priority": 80, "retry": {"strategy": "fixed"}}');
--
-- When a queue gets its first max_depth, its waiting tasks are counted; those of transactions that
-- are open at that time are not. protocol_queues decides how tasks reach their agents when the
-- queue is created; this never changes, because the protocols rely on it. Returns whether the queue
-- is new.
--
-- Concurrency: one row; when max_depth is first set or removed, also its tasks, see cap_tasks.
-- Lock order:  queues, tasks, then the history.
-- Raises:      TR001 invalid argument.

-- cap_tasks: mark or unmark the tasks of a queue that count towards its depth while they wait.
--
-- Running tasks are marked too: they count if they return to the queue.
--
-- Concurrency: locks tasks in id order, in batches, and waits for locks.
-- Lock order:  tasks.
create or replace function treadle.cap_tasks(p_queue text, p_capped boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_last uuid := '00000000-0000-0000-0000-000000000000';
  v_ids  uuid[];
begin
  loop
    v_ids := array(
      select tasks.id
      from treadle.tasks
      where
        tasks.queue = p_queue and tasks.completed_at is null and tasks.capped <> p_capped
        and tasks.id > v_last
      order by tasks.id
      limit 10000
    );
    exit when v_ids = '{}';
    perform treadle.lock_tasks(v_ids);
    update treadle.tasks
    set capped = p_capped
    where tasks.id = any (v_ids) and tasks.completed_at is null;
    v_last := v_ids[cardinality(v_ids)];
  end loop;
end;
$$;

create or replace function treadle.define_queue(
  p_name      text,
  p_settings  jsonb default '{}',
  p_actor     text default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  c_fixed    constant text[] := array['assignment', 'on_lease_expiry', 'keep_changes'];
  c_settings constant text[] := array[
    'max_spec_bytes', 'audit', 'max_depth', 'fair', 'hold', 'keep_completed_s', 'keep_cancelled_s',
    'keep_dead_s', 'prune_mode'
  ];
  v_made       boolean;
  v_old        treadle.queues;
  v_new        treadle.queues;
  v_constraint text;
  v_column     text;
begin
  if p_settings ?| c_fixed then
    perform treadle.raise_error(
      format(
        '%s of queue %s cannot be changed', array_to_string(c_fixed, ', '),
        left(quote_nullable(p_name), 60)
      ),
      jsonb_build_object('argument', 'settings'),
      'They are fixed for the queues of treadle.protocol_queues. To release tasks of another queue '
      'one by one, set hold.'
    );
  end if;
  perform treadle.check_options(p_settings, 'queue', c_settings);
  insert into treadle.queues (name) values (p_name) on conflict (name) do nothing;
  v_made := found;
  if v_made then
    update treadle.queues
    set
      assignment = preset.assignment,
      hold = preset.hold,
      on_lease_expiry = preset.on_lease_expiry,
      keep_changes = preset.keep_changes
    from treadle.protocol_queues as preset
    where queues.name = p_name and preset.name = p_name;
  end if;
  select queues.* into v_old from treadle.queues where queues.name = p_name for no key update;
  v_new := jsonb_populate_record(v_old, p_settings);

  -- An UPDATE cannot assign a whole row, so each setting is listed.
  update treadle.queues
  set
    priority = v_new.priority,
    max_attempts = v_new.max_attempts,
    timeout_s = v_new.timeout_s,
    ageing_rate = v_new.ageing_rate,
    retry = v_new.retry,
    max_spec_bytes = v_new.max_spec_bytes,
    audit = v_new.audit,
    max_depth = v_new.max_depth,
    fair = v_new.fair,
    hold = v_new.hold,
    keep_completed_s = v_new.keep_completed_s,
    keep_cancelled_s = v_new.keep_cancelled_s,
    keep_dead_s = v_new.keep_dead_s,
    prune_mode = v_new.prune_mode
  where queues.name = p_name and v_new is distinct from v_old;
  if (v_new.max_depth is null) <> (v_old.max_depth is null) then
    perform treadle.cap_tasks(p_name, v_new.max_depth is not null);
  end if;
  if v_made or v_new is distinct from v_old then
    insert into treadle.events (at, kind, queue, actor, data)
    values (
      treadle.clock(), 'queue.defined', p_name, coalesce(p_actor, session_user),
      jsonb_build_object('settings', p_settings)
    );
  end if;
  return v_made;
exception
  when check_violation or not_null_violation or data_exception then
    get stacked diagnostics v_constraint = constraint_name, v_column = column_name;
    perform treadle.raise_error(
      format(
        'queue %s cannot be defined: %s', left(quote_nullable(p_name), 60),
        treadle.constraint_message(sqlerrm, v_constraint, v_column)
      ),
      jsonb_build_object('argument', 'queue'),
      'A name has 1 to 48 of a-z 0-9 _ . - and audit is compact or full, max_depth 1 or more, '
      'fair and hold true or false (hold stays true in queues with manual assignment), '
      'keep_completed_s, keep_cancelled_s and keep_dead_s 0 or more, prune_mode archive or drop.'
    );
end;
$$;

comment on function treadle.define_queue(text, jsonb, text) is
'Create or change a queue: task defaults, payload size limit, depth limit, audit level and '
'how long it keeps tasks that have ended.';

grant execute on function treadle.define_queue(text, jsonb, text) to treadle_operator;
