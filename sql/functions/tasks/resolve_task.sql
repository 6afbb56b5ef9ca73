-- resolve_task: carry out a person's decision about a task, and record it.
--
-- The caller applies the consequences for other tasks, once for all tasks that it decided about.
--
-- Concurrency: the row is locked, then checked.
-- Lock order:  tasks, lanes, then the history.
-- Raises:      TR001 invalid argument, TR102 illegal transition, TR201 task not found.

-- edit_spec: return the spec of a task with the changes of a person.
--
-- spec replaces whole arguments. set changes single values by path: a.b.c, or items.0 in a list;
-- missing objects on the path are created. unset removes values.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.edit_spec(p_spec jsonb, p_changes jsonb)
returns jsonb
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_spec jsonb := p_spec;
  v_edit record;
  v_kind text;
begin
  if jsonb_typeof(coalesce(p_changes -> 'spec', '{}')) <> 'object'
    or jsonb_typeof(coalesce(p_changes -> 'set', '{}')) <> 'object'
    or jsonb_path_exists(coalesce(p_changes -> 'unset', '[]'), 'strict $ ? (@.type() != "array")')
    or jsonb_path_exists(p_changes, '$.unset[*] ? (@.type() != "string")') then
    perform treadle.raise_error(
      'spec and set must be JSON objects, unset a list of paths',
      jsonb_build_object('argument', 'changes'),
      'For example {"set": {"options.depth": 2}, "unset": ["url"]}.'
    );
  end if;

  v_spec := v_spec || coalesce(p_changes -> 'spec', '{}');
  for v_edit in
    select regexp_split_to_array(given.key, '\.') as path, given.value
    from jsonb_each(coalesce(p_changes -> 'set', '{}')) as given
    union all
    select regexp_split_to_array(gone.path, '\.'), null
    from jsonb_array_elements_text(coalesce(p_changes -> 'unset', '[]')) as gone (path)
  loop
    for v_at in 1..cardinality(v_edit.path) loop
      v_kind := jsonb_typeof(v_spec #> v_edit.path[:v_at - 1]);
      if v_edit.path[v_at] = '' or v_kind not in ('object', 'array') or (
        v_kind = 'array'
        and (v_edit.path[v_at] !~ '^[0-9]{1,9}$' or v_spec #> v_edit.path[:v_at] is null)
      ) then
        perform treadle.raise_error(
          format(
            'the spec has no path %s',
            treadle.excerpt_name(array_to_string(v_edit.path, '.'))
          ),
          jsonb_build_object('argument', 'set'),
          'Use a path that exists or can be added to an object: a.b.c, or items.0 in a list.'
        );
      end if;
      if v_kind is null and v_edit.value is not null then
        v_spec := jsonb_set(v_spec, v_edit.path[:v_at - 1], '{}');
      end if;
    end loop;
    v_spec := case
      when v_edit.value is null then v_spec #- v_edit.path
      else jsonb_set(v_spec, v_edit.path, v_edit.value)
    end;
  end loop;
  return v_spec;
end;
$$;

-- edited_arguments: return the names of the arguments that a change touches. edit_spec has checked
-- the change.
create or replace function treadle.edited_arguments(p_changes jsonb)
returns text[]
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    array(
      select jsonb_object_keys(coalesce(p_changes -> 'spec', '{}'))
      union
      select split_part(jsonb_object_keys(coalesce(p_changes -> 'set', '{}')), '.', 1)
      union
      select split_part(jsonb_array_elements_text(coalesce(p_changes -> 'unset', '[]')), '.', 1)
    )
$$;

-- reset_expired_waits: let a retried task ask questions again that were not answered in time.
--
-- Concurrency: the caller has locked the task.
-- Lock order:  waits, steps; after tasks.
create or replace function treadle.reset_expired_waits(p_task uuid)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  update treadle.waits
  set status = 'cancelled'
  where waits.task_id = p_task and waits.status = 'expired';

  delete from treadle.steps
  where
    steps.task_id = p_task and steps.kind = 'wait' and steps.output ->> 'status' = 'expired';
$$;

-- restart_task: restart a task with a new round of attempts, and with changes.
--
-- The new round has as many attempts as the task was given, or as the changes say; attempt numbers
-- continue. It becomes ready, or pending if it waits for other tasks or for its time.
--
-- Concurrency: the caller has locked the row.
-- Lock order:  lanes, tasks.
-- Raises:      TR001 invalid argument, TR002 too large, TR202 unknown queue, TR203 unknown type,
--              TR102 illegal transition (another task has its key now).
create or replace function treadle.restart_task(
  p_task     treadle.tasks,
  p_changes  jsonb,
  p_run_at   timestamptz,
  p_now      timestamptz
)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_spec   jsonb := treadle.edit_spec(p_task.spec, p_changes);
  v_old    treadle.tasks := p_task;
  v_kind   record;
  v_new    treadle.tasks;
  v_status text;
begin
  v_old.max_attempts := p_task.max_attempts - p_task.earlier_attempts;
  v_old.run_at := p_run_at;
  v_kind := treadle.prepare_task(
    p_changes, 'edit', p_task.created_at, v_old, treadle.options_of(p_task)
  );
  v_new := v_kind.task;
  v_status := case
    when p_task.blocked_count > 0 or v_new.run_at > p_now then 'pending' else 'ready'
  end;
  perform treadle.check_specs(
    array[v_spec],
    (select queues.max_spec_bytes from treadle.queues where queues.name = v_new.queue)
  );

  -- An UPDATE cannot assign a whole row, and the columns that are not listed keep their history.
  update treadle.tasks
  set
    status = case v_status
      when 'ready' then treadle.entry_status(v_new.concurrency_key, null) else v_status
    end,
    slot = case
      when v_status = 'ready' then treadle.entry_slot(v_new.concurrency_key, null)
    end,
    max_attempts = tasks.attempt + v_new.max_attempts,
    earlier_attempts = tasks.attempt,
    spec = v_spec,
    -- An argument that a person has set is no longer taken from another task's output.
    inputs = nullif(tasks.inputs - treadle.edited_arguments(p_changes), '{}'),
    queue = v_new.queue,
    type = v_new.type,
    lane_id = v_new.lane_id,
    rank = v_new.rank,
    priority = v_new.priority,
    timeout_s = v_new.timeout_s,
    title = v_new.title,
    has_options = v_new.has_options,
    assigned_agent = v_new.assigned_agent,
    deadline_at = v_new.deadline_at,
    rerank_at = v_new.rerank_at,
    concurrency_key = v_new.concurrency_key,
    max_cost_usd = v_new.max_cost_usd,
    capped = v_new.capped,
    retry_at = null,
    run_at = v_new.run_at,
    -- A delay that is still running; resolve_task sets a new one.
    delayed_at = case
      when v_new.run_at is not distinct from tasks.run_at then tasks.delayed_at
    end,
    completed_at = null,
    -- A result of the old round is no longer accepted.
    last_token = null
  where tasks.id = p_task.id;

  delete from treadle.task_options where task_options.task_id = p_task.id and p_task.has_options;
  perform treadle.store_options(array[v_kind.rest], array[p_task.id]) where v_new.has_options;
  perform treadle.reset_expired_waits(p_task.id) where p_task.durable;
  perform treadle.notify_workers(array[v_new.queue]);
  perform treadle.notify_promoter(v_new.run_at);
  perform treadle.request_slots(array[v_new.concurrency_key])
  where v_status = 'ready' and v_new.concurrency_key is not null;
  return case v_status
    when 'ready' then treadle.entry_status(v_new.concurrency_key, null) else v_status
  end;
exception
  when unique_violation then
    perform treadle.raise_error(
      format('another task now has the key %L of task %s', p_task.idempotency_key, p_task.id),
      jsonb_build_object('task_id', p_task.id, 'idempotency_key', p_task.idempotency_key),
      'Let that task run, or cancel it first.',
      'TR102'
    );
end;
$$;

create or replace function treadle.resolve_task(
  p_id          uuid,
  p_resolution  text,
  p_changes     jsonb,
  p_reviewer    text,
  p_note        text,
  p_delay_s     double precision default null
)
returns text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_task treadle.tasks;
  v_by   text := coalesce(p_reviewer, session_user);
  v_to   text := case p_resolution when 'cancel' then 'cancelled' else 'ready' end;
begin
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id for no key update;
  if not found or not exists (
    select from treadle.transitions
    where
      transitions.from_status = v_task.status and transitions.to_status = v_to
      and transitions.by = 'retry_task'
  ) then
    perform treadle.raise_invalid_transition(p_id, v_to, 'retry_task');
  end if;

  with letter as (
    update treadle.dead_letters
    set
      resolved_at = v_now,
      resolution = p_resolution,
      reviewer = v_by,
      note = p_note,
      changes = nullif(p_changes, '{}')
    where dead_letters.task_id = p_id and dead_letters.resolution is null
    returning dead_letters.*
  )

  insert into treadle.dead_letter_decisions (
    at, letter_id, task_id, decision, actor, note, changes, delay_s, queue, type, class,
    fingerprint, about
  )
  select
    v_now, letter.id, p_id, p_resolution, v_by, p_note, letter.changes, p_delay_s, v_task.queue,
    v_task.type, letter.class, letter.fingerprint, letter.about
  from letter;
  insert into treadle.events (at, kind, task_id, queue, actor, data)
  values (
    v_now, case v_to when 'cancelled' then 'task.cancelled' else 'task.retried' end,
    p_id, v_task.queue, v_by,
    jsonb_build_object('was', v_task.status, 'note', p_note, 'changes', p_changes)
    || case when p_delay_s is null then '{}' else jsonb_build_object('delay_s', p_delay_s) end
  );

  if v_to = 'cancelled' then
    update treadle.tasks
    set status = 'cancelled', completed_at = v_now
    where tasks.id = p_id;
  else
    v_to := treadle.restart_task(
      v_task,
      coalesce(p_changes, '{}'),
      case when p_delay_s > 0 then v_now + make_interval(secs => p_delay_s) end,
      v_now
    );
    update treadle.tasks set delayed_at = v_now where p_delay_s > 0 and tasks.id = p_id;
  end if;
  perform treadle.log_work(
    p_id, v_by, treadle.work_status(v_task.status), treadle.work_status(tasks.status),
    tasks.assigned_agent, p_note, v_to <> 'cancelled'
  )
  from treadle.tasks
  inner join treadle.queues on tasks.queue = queues.name
  where tasks.id = p_id and queues.keep_changes;
  return v_to;
end;
$$;
