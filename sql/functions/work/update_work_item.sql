-- update_work_item: change the status, outcome, notes or assigned_agent of a work item.
--
-- select treadle.update_work_item(id, '{"status": "dispatched", "assigned_agent": "steve-w"}');
--
-- The view work_transitions lists the allowed changes and what they require. In progress means
-- claimed by the agent: each change renews the claim for p_stale_s seconds; without changes the
-- reaper blocks the item. With unless_updated_since the item must not have changed since that time.
-- p_acting_agent is the acting agent, which must be the one that has the item.
--
-- Concurrency: the item is locked, then checked; an agent has one item in progress at any time.
-- Lock order:  tasks, dags, lanes, then the history.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR102 illegal transition, TR108 the agent
--              has another item, TR215 work item not found.

-- check_work_text: reject a text of a work item that is empty or too long.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_work_text(
  p_name      text,
  p_text      text,
  p_max       integer,
  p_required  boolean
)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if (p_required and p_text is null) or char_length(p_text) > p_max or p_text !~ '\S' then
    perform treadle.raise_error(
      format(
        '%s must have 1 to %s characters, not %s', p_name, p_max, coalesce(char_length(p_text), 0)
      ),
      jsonb_build_object('argument', p_name),
      case
        when not p_required and p_text !~ '\S' then
          format('Omit %s if there is none.', p_name)
      end
    );
  end if;
end;
$$;

-- check_work: check the changes of a work item.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_work(p_changes jsonb, p_stale_s double precision)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  c_known constant text[] := array[
    'status', 'outcome', 'notes', 'assigned_agent', 'unless_updated_since'
  ];
begin
  perform treadle.check_settings(p_changes, c_known);
  if p_changes = '{}' or jsonb_path_exists(p_changes, '$.* ? (@.type() != "string")') then
    perform treadle.raise_error(
      case p_changes
        when '{}' then 'no changes were given' else 'all changes must be texts'
      end,
      jsonb_build_object('argument', 'changes'), 'Fields: ' || array_to_string(c_known, ', ')
    );
  end if;
  if p_changes ->> 'status' not in (
    select work_transitions.to_status from treadle.work_transitions
  ) then
    perform treadle.raise_error(
      format('unknown status %L', left(p_changes ->> 'status', 60)),
      jsonb_build_object('argument', 'status'),
      'See the view treadle.work_transitions.'
    );
  end if;
  perform treadle.check_work_text('assigned_agent', p_changes ->> 'assigned_agent', 200, false);
  if char_length(p_changes ->> 'notes') > 20000 then
    perform treadle.check_work_text('notes', p_changes ->> 'notes', 20000, false);
  end if;
  if not coalesce(p_stale_s > 0 and p_stale_s <= 31536000, false) then
    perform treadle.raise_error(
      'the time without updates must be above 0 and at most a year',
      jsonb_build_object('argument', 'stale_s')
    );
  end if;
end;
$$;

-- raise_invalid_work_change: raise the error for an illegal change of a work item, with the allowed
-- states.
--
-- Raises:      TR102 illegal transition.
create or replace function treadle.raise_invalid_work_change(
  p_id      uuid,
  p_from    text,
  p_to      text,
  p_reason  text default null
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_allowed text[] := array(
    select work_transitions.to_status
    from treadle.work_transitions
    where work_transitions.from_status = p_from
    order by 1
  );
begin
  perform treadle.raise_error(
    coalesce(
      p_reason, format('work item %s is %s and cannot become %s', p_id, p_from, p_to)
    ),
    jsonb_build_object(
      'work_item_id', p_id, 'from', p_from, 'to', p_to, 'allowed', v_allowed
    ),
    case
      when v_allowed = '{}' then format('The status %s is final.', p_from)
      else 'Allowed from here: ' || array_to_string(v_allowed, ', ') || '.'
    end,
    'TR102'
  );
end;
$$;

-- lock_work_item: lock a work item and everything that its next state affects.
--
-- Concurrency: waits for the item; its dependents are locked with it, in id order.
-- Lock order:  tasks, dags.
-- Raises:      TR215 work item not found.
create or replace function treadle.lock_work_item(p_id uuid, p_to text)
returns treadle.tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks;
begin
  if exists (select from treadle.tasks where tasks.id = p_id and tasks.queue = 'work') then
    case p_to
      when 'completed' then perform treadle.lock_with_dependents(array[p_id]);
      when 'failed' then perform treadle.lock_failure_cascade(array[p_id], false);
      when 'cancelled' then perform treadle.lock_downstream(array[p_id]);
      else null;
    end case;
  end if;
  select tasks.*
  into v_task
  from treadle.tasks
  where tasks.id = p_id and tasks.queue = 'work'
  for no key update;
  if not found then
    perform treadle.raise_error(
      format('there is no work item %s', coalesce(p_id::text, 'null')),
      jsonb_build_object('work_item_id', p_id),
      'To list them: GET /work, or select * from treadle.work_items',
      'TR215'
    );
  end if;
  return v_task;
end;
$$;

-- check_work_change: check changes against the current state of a work item.
--
-- The view work_transitions has the rules for states. In addition, the outcome must match the
-- state, an item in progress cannot be given to another agent, and starting an item that is in
-- progress is an error. Repeating any other value is not an error.
--
-- Concurrency: the caller has locked the item.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR102 illegal transition.
create or replace function treadle.check_work_change(
  p_task     treadle.tasks,
  p_notes    text,
  p_changes  jsonb,
  p_acting_agent       text
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from  text := treadle.work_status(p_task.status);
  v_to    text := coalesce(p_changes ->> 'status', v_from);
  v_agent text := coalesce(p_changes ->> 'assigned_agent', p_task.assigned_agent);
  v_needs text;
  v_given jsonb := p_changes || jsonb_build_object('assigned_agent', v_agent);
begin
  if p_acting_agent is not null and p_task.assigned_agent is distinct from p_acting_agent then
    perform treadle.raise_error(
      format('work item %s is not assigned to %s', p_task.id, p_acting_agent),
      jsonb_build_object('work_item_id', p_task.id), 'Fetch your work items again.', 'TR101'
    );
  end if;
  if (p_changes ->> 'unless_updated_since')::timestamptz < (
    select max(work_log.at) from treadle.work_log where work_log.task_id = p_task.id
  ) then
    perform treadle.raise_invalid_work_change(
      p_task.id, v_from, v_to, format('work item %s has changed since it was read', p_task.id)
    );
  end if;

  select work_transitions.needs
  into v_needs
  from treadle.work_transitions
  where work_transitions.from_status = v_from and work_transitions.to_status = v_to;
  if not found and v_to <> v_from then
    perform treadle.raise_invalid_work_change(p_task.id, v_from, v_to);
  elsif v_from = 'in_progress' and p_changes ->> 'status' = v_from
    and coalesce(p_changes ->> 'notes' = p_notes, not p_changes ? 'notes') then
    perform treadle.raise_invalid_work_change(
      p_task.id, v_from, v_to, format('work item %s is already in progress', p_task.id)
    );
  elsif v_agent is distinct from p_task.assigned_agent
    and v_from not in ('queued', 'dispatched', 'blocked') then
    perform treadle.raise_invalid_work_change(
      p_task.id, v_from, v_to,
      format(
        'work item %s is %s with %s and cannot be given to %s', p_task.id, v_from,
        p_task.assigned_agent, v_agent
      )
    );
  end if;

  if v_needs is not null and coalesce(v_given ->> v_needs, '') !~ '\S' then
    perform treadle.raise_error(
      format('a work item needs %2$s to become %1$s', v_to, v_needs),
      jsonb_build_object('argument', v_needs), format('Pass %s as well.', v_needs)
    );
  elsif p_changes ->> 'outcome' <> coalesce(treadle.work_outcome(v_to), '') then
    perform treadle.raise_error(
      format(
        'outcome %s does not match the status %s', treadle.excerpt(p_changes -> 'outcome'), v_to
      ),
      jsonb_build_object('argument', 'outcome'),
      'Use success for completed, failed for failed and cancelled for cancelled items.'
    );
  end if;
end;
$$;

-- write_notes: write the notes of a task.
--
-- Concurrency: the caller holds the task.
-- Lock order:  tasks, task_options.
create or replace function treadle.write_notes(p_id uuid, p_notes text)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.task_options (task_id, notes) values (p_id, p_notes)
  on conflict (task_id) do update set notes = excluded.notes;
  update treadle.tasks set has_options = true where tasks.id = p_id and not tasks.has_options;
$$;

-- write_work: write the agent of a work item, and renew its lease.
--
-- The lane decides which agent may have a task, so another agent means another lane.
--
-- Concurrency: the caller has locked the item.
-- Lock order:  lanes, tasks.
create or replace function treadle.write_work(
  p_task     treadle.tasks,
  p_agent    text,
  p_stale_s  double precision,
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_task treadle.tasks := p_task;
begin
  if p_agent is distinct from p_task.assigned_agent then
    v_task.assigned_agent := p_agent;
    select placed.*
    into v_task
    from treadle.task_types
    cross join treadle.queues
    cross join lateral treadle.assign_lane(
      v_task, treadle.options_of(p_task), task_types, queues
    ) as placed
    where task_types.name = p_task.type and queues.name = p_task.queue;
  end if;

  update treadle.tasks
  set
    assigned_agent = p_agent,
    lane_id = v_task.lane_id,
    rank = v_task.rank,
    rerank_at = v_task.rerank_at,
    heartbeat_at = case
      when p_task.claim_token is null then tasks.heartbeat_at else p_now
    end,
    lease_until = case
      when p_task.claim_token is not null then p_now + make_interval(secs => p_stale_s)
    end
  where tasks.id = p_task.id;
end;
$$;

create or replace function treadle.update_work_item(
  p_id       uuid,
  p_changes  jsonb,
  p_actor    text default null,
  p_acting_agent       text default null,
  p_stale_s  double precision default 1800
)
returns uuid
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz;
  v_task  treadle.tasks;
  v_from  text;
  v_to    text;
  v_agent text;
  v_was   text;
  v_notes text;
  v_moves boolean;
  v_given boolean;
begin
  perform treadle.check_work(p_changes, p_stale_s);
  perform treadle.ensure_durable();
  v_task := treadle.lock_work_item(p_id, p_changes ->> 'status');
  v_now := treadle.clock();
  v_was := (treadle.options_of(v_task)).notes;
  perform treadle.check_work_change(v_task, v_was, p_changes, p_acting_agent);
  v_from := treadle.work_status(v_task.status);
  v_to := coalesce(p_changes ->> 'status', v_from);
  v_agent := coalesce(p_changes ->> 'assigned_agent', v_task.assigned_agent);
  v_notes := coalesce(p_changes ->> 'notes', v_was);
  v_moves := v_to <> v_from;
  v_given := v_agent is distinct from v_task.assigned_agent;
  if not v_moves and not v_given and v_from <> 'in_progress'
    and v_notes is not distinct from v_was then
    return p_id;
  end if;

  perform treadle.write_work(v_task, v_agent, p_stale_s, v_now);
  perform treadle.write_notes(p_id, v_notes) where v_notes is distinct from v_was;
  if v_moves then
    perform treadle.move_work(
      v_task, v_to, v_agent, p_changes ->> 'notes', p_actor, p_stale_s, v_now
    );
  end if;
  -- cancel_rows logs all cancellations.
  if v_to <> 'cancelled' or not v_moves then
    perform treadle.log_work(
      p_id, p_actor, v_from, v_to, v_agent, p_changes ->> 'notes',
      v_to = 'dispatched' and v_moves or v_given and v_to <> 'queued',
      p_at => case when v_moves then coalesce(tasks.completed_at, v_now) else v_now end
    )
    from treadle.tasks
    where tasks.id = p_id;
  end if;
  return p_id;
end;
$$;

comment on function treadle.update_work_item(uuid, jsonb, text, text, double precision) is
'Change a work item as far as its state allows.';

grant execute on function
treadle.update_work_item(uuid, jsonb, text, text, double precision) to
treadle_worker, treadle_operator;
