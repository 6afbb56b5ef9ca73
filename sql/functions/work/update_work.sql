-- update_work: change a work item: its status, outcome, notes, assigned_agent.
--
-- select treadle.update_work(id, '{"status": "dispatched", "assigned_agent": "steve-w"}');
--
-- What may become what, and what has to be said with it, is in the view work_transitions. In
-- progress means claimed by the agent: each change renews the claim for p_stale_s, and without any
-- the reaper blocks the item. With unless_updated_since the item must not have changed since. p_as
-- is who acts, where that is to be the agent that has the item.
--
-- Concurrency: the item is locked, then judged; an agent has one item in progress at any time.
-- Lock order:  tasks, dags, lanes, then the history.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR102 illegal transition, TR108 the agent
--              has another item, TR215 work item not found.

-- check_work_text: refuse a text of a work item that is empty or too long.
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
  if (p_required and p_text is null) or octet_length(p_text) > p_max or p_text !~ '\S' then
    perform treadle.refuse(
      format(
        '%s must have 1 to %s bytes, not %s', p_name, p_max, coalesce(octet_length(p_text), 0)
      ),
      jsonb_build_object('argument', p_name),
      case
        when not p_required and p_text !~ '\S' then
          format('Leave %s out where there is none.', p_name)
      end
    );
  end if;
end;
$$;

-- check_work: refuse changes of a work item that no item can have.
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
    perform treadle.refuse(
      case p_changes
        when '{}' then 'nothing is to be changed' else 'what is to be changed must be texts'
      end,
      jsonb_build_object('argument', 'changes'), 'Fields: ' || array_to_string(c_known, ', ')
    );
  end if;
  if p_changes ->> 'status' not in (
    select work_transitions.to_status from treadle.work_transitions
  ) then
    perform treadle.refuse(
      format('there is no status %L', left(p_changes ->> 'status', 60)),
      jsonb_build_object('argument', 'status'),
      'See the view treadle.work_transitions.'
    );
  end if;
  perform treadle.check_work_text('assigned_agent', p_changes ->> 'assigned_agent', 200, false);
  if octet_length(p_changes ->> 'notes') > 20000 then
    perform treadle.check_work_text('notes', p_changes ->> 'notes', 20000, false);
  end if;
  if not coalesce(p_stale_s > 0 and p_stale_s <= 31536000, false) then
    perform treadle.refuse(
      'the time after which an item is stale must be above 0 and at most a year',
      jsonb_build_object('argument', 'stale_s')
    );
  end if;
end;
$$;

-- refuse_work: say that a work item cannot go where it was sent, and where it can.
--
-- Raises:      TR102 illegal transition.
create or replace function treadle.refuse_work(
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
  perform treadle.refuse(
    coalesce(
      p_reason, format('work item %s is %s and cannot become %s', p_id, p_from, p_to)
    ),
    jsonb_build_object(
      'work_item_id', p_id, 'from', p_from, 'to', p_to, 'allowed', v_allowed
    ),
    case
      when v_allowed = '{}' then format('An item that is %s stays so.', p_from)
      else 'From here it can become ' || array_to_string(v_allowed, ', ') || '.'
    end,
    'TR102'
  );
end;
$$;

-- hold_work: lock a work item, and whatever its next state will touch.
--
-- Concurrency: waits for the item; what depends on it is locked with it, in id order.
-- Lock order:  tasks, dags.
-- Raises:      TR215 work item not found.
create or replace function treadle.hold_work(p_id uuid, p_to text)
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
      when 'failed' then perform treadle.lock_fallout(array[p_id], false);
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
    perform treadle.refuse(
      format('there is no work item %s', coalesce(p_id::text, 'null')),
      jsonb_build_object('work_item_id', p_id),
      'List them: GET /work, or select * from treadle.work_items',
      'TR215'
    );
  end if;
  return v_task;
end;
$$;

-- judge_work: refuse changes that do not fit the work item as it is now.
--
-- The rules about states are rows of work_transitions. Besides: an outcome is that of the state,
-- an item in progress is not given to another agent, and who takes an item that is taken is told
-- so. To say again what is so already is no error anywhere else.
--
-- Concurrency: the caller holds the item.
-- Raises:      TR001 invalid argument, TR101 claim lost, TR102 illegal transition.
create or replace function treadle.judge_work(
  p_task     treadle.tasks,
  p_changes  jsonb,
  p_as       text
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
  if p_as is not null and p_task.assigned_agent is distinct from p_as then
    perform treadle.refuse(
      format('work item %s is not assigned to %s', p_task.id, p_as),
      jsonb_build_object('work_item_id', p_task.id), 'Ask for your items again.', 'TR101'
    );
  end if;
  if (p_changes ->> 'unless_updated_since')::timestamptz < (
    select max(work_log.at) from treadle.work_log where work_log.task_id = p_task.id
  ) then
    perform treadle.refuse_work(
      p_task.id, v_from, v_to, format('work item %s has changed since it was read', p_task.id)
    );
  end if;

  select work_transitions.needs
  into v_needs
  from treadle.work_transitions
  where work_transitions.from_status = v_from and work_transitions.to_status = v_to;
  if not found and v_to <> v_from then
    perform treadle.refuse_work(p_task.id, v_from, v_to);
  elsif v_from = 'in_progress' and p_changes ->> 'status' = v_from
    and coalesce(p_changes ->> 'notes' = p_task.notes, not p_changes ? 'notes') then
    perform treadle.refuse_work(
      p_task.id, v_from, v_to, format('work item %s is in progress already', p_task.id)
    );
  elsif v_agent is distinct from p_task.assigned_agent
    and v_from not in ('queued', 'dispatched', 'blocked') then
    perform treadle.refuse_work(
      p_task.id, v_from, v_to,
      format(
        'work item %s is %s with %s and not given to %s', p_task.id, v_from,
        p_task.assigned_agent, v_agent
      )
    );
  end if;

  if v_needs is not null and coalesce(v_given ->> v_needs, '') !~ '\S' then
    perform treadle.refuse(
      format('a work item does not become %s without %s', v_to, v_needs),
      jsonb_build_object('argument', v_needs), format('Send %s, too.', v_needs)
    );
  elsif p_changes ->> 'outcome' <> coalesce(treadle.work_outcome(v_to), '') then
    perform treadle.refuse(
      format(
        '%s is not the outcome of an item that is %s', treadle.excerpt(p_changes -> 'outcome'), v_to
      ),
      jsonb_build_object('argument', 'outcome'),
      'Completed items have the outcome success, failed ones failed, cancelled ones cancelled.'
    );
  end if;
end;
$$;

-- write_work: write the agent and the notes of a work item, and renew its lease.
--
-- Which agent may have a task is a matter of its lane, so another agent means another lane.
--
-- Concurrency: the caller holds the item.
-- Lock order:  lanes, tasks.
create or replace function treadle.write_work(
  p_task     treadle.tasks,
  p_agent    text,
  p_notes    text,
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
    cross join lateral treadle.place_task(v_task, task_types, queues) as placed
    where task_types.name = p_task.type and queues.name = p_task.queue;
  end if;

  update treadle.tasks
  set
    assigned_agent = p_agent,
    lane_id = v_task.lane_id,
    rank = v_task.rank,
    rerank_at = v_task.rerank_at,
    notes = p_notes,
    heartbeat_at = case
      when p_task.claim_token is null then tasks.heartbeat_at else p_now
    end,
    lease_until = case
      when p_task.claim_token is not null then p_now + make_interval(secs => p_stale_s)
    end
  where tasks.id = p_task.id;
end;
$$;

create or replace function treadle.update_work(
  p_id       uuid,
  p_changes  jsonb,
  p_actor    text default null,
  p_as       text default null,
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
  v_notes text;
  v_moves boolean;
  v_given boolean;
begin
  perform treadle.check_work(p_changes, p_stale_s);
  perform treadle.keep_durable();
  v_task := treadle.hold_work(p_id, p_changes ->> 'status');
  v_now := treadle.clock();
  perform treadle.judge_work(v_task, p_changes, p_as);
  v_from := treadle.work_status(v_task.status);
  v_to := coalesce(p_changes ->> 'status', v_from);
  v_agent := coalesce(p_changes ->> 'assigned_agent', v_task.assigned_agent);
  v_notes := coalesce(p_changes ->> 'notes', v_task.notes);
  v_moves := v_to <> v_from;
  v_given := v_agent is distinct from v_task.assigned_agent;
  if not v_moves and not v_given and v_from <> 'in_progress'
    and v_notes is not distinct from v_task.notes then
    return p_id;
  end if;

  perform treadle.write_work(v_task, v_agent, v_notes, p_stale_s, v_now);
  if v_moves then
    perform treadle.move_work(
      v_task, v_to, v_agent, p_changes ->> 'notes', p_actor, p_stale_s, v_now
    );
  end if;
  -- A cancellation is written down by cancel_rows, whoever asked for it.
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

comment on function treadle.update_work(uuid, jsonb, text, text, double precision) is
'Change a work item, as far as its state allows.';

grant execute on function
treadle.update_work(uuid, jsonb, text, text, double precision) to
treadle_worker, treadle_operator;
