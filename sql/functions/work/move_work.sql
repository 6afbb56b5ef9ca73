-- move_work: move a work item to another state, with the functions that all tasks use.
--
-- Concurrency: the caller has locked the item and its dependents.
-- Lock order:  tasks, dags, then the history.
-- Raises:      TR102 illegal transition, TR108 the agent has another item.

-- start_work_item: start a work item for an agent that has no other item in progress.
--
-- It is an ordinary claim with a token that is not returned: the state of the item protects it.
--
-- Concurrency: the caller has locked the item. For two items of one agent, the second waits in the
-- unique index for the first to commit, and is rejected.
-- Lock order:  tasks.
-- Raises:      TR102 illegal transition, TR108 the agent has another item.
create or replace function treadle.start_work_item(
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
  v_other uuid;
begin
  if p_task.status = 'pending' then
    perform treadle.raise_invalid_work_change(
      p_task.id, 'dispatched', 'in_progress',
      format('work item %s waits for other tasks or for its time', p_task.id)
    );
  end if;

  update treadle.tasks
  set
    status = 'running',
    attempt = tasks.attempt + 1,
    agent_id = p_agent,
    claim_token = gen_random_uuid(),
    last_token = null,
    claimed_at = p_now,
    started_at = p_now,
    heartbeat_at = p_now,
    lease_until = p_now + make_interval(secs => p_stale_s),
    -- People decide how long it may take; the lease limits the time without updates.
    timeout_s = null,
    retry_at = null,
    progress = null
  where tasks.id = p_task.id;
exception
  when unique_violation then
    select tasks.id
    into v_other
    from treadle.tasks
    where
      tasks.queue = 'work' and tasks.agent_id = p_agent
      and tasks.status in ('claimed', 'running', 'validating');
    perform treadle.raise_error(
      format('agent %s already has a work item in progress', p_agent),
      jsonb_build_object(
        'agent', p_agent, 'work_item_id', p_task.id, 'in_progress', v_other,
        'from', treadle.work_status(p_task.status), 'to', 'in_progress',
        -- The allowed states while the agent has the other item.
        'allowed', array(
          select work_transitions.to_status
          from treadle.work_transitions
          where
            work_transitions.from_status = treadle.work_status(p_task.status)
            and work_transitions.to_status <> 'in_progress'
          order by 1
        )
      ),
      'End or block that item first.',
      'TR108'
    );
end;
$$;

create or replace function treadle.move_work(
  p_task     treadle.tasks,
  p_to       text,
  p_agent    text,
  p_notes    text,
  p_actor    text,
  p_stale_s  double precision,
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is text;
begin
  case p_to
    when 'dispatched' then
      perform treadle.release_held_rows(array[p_task.id], p_now);
    when 'in_progress' then
      perform treadle.start_work_item(p_task, p_agent, p_stale_s, p_now);
    when 'blocked' then
      perform treadle.suspend_claim(p_task, 'blocked', 0, null, p_now);
    when 'completed' then
      perform done.id
      from treadle.complete_tasks(
        array[p_task.id], array[p_task.claim_token],
        array[jsonb_strip_nulls(jsonb_build_object('outcome', 'success', 'notes', p_notes))]
      ) as done;
    when 'failed' then
      perform ended.id
      from treadle.fail_tasks(
        array[p_task.id], array[p_task.claim_token], array['error'],
        array[coalesce(p_notes, 'the agent reported a failure')], array['fail']
      ) as ended;
    when 'cancelled' then
      perform gone.id from treadle.cancel_tasks(array[p_task.id], p_notes, p_actor) as gone;
  end case;

  select treadle.work_status(tasks.status)
  into v_is
  from treadle.tasks
  where tasks.id = p_task.id;
  if v_is <> p_to then
    -- For example, a node of a DAG that has not started.
    perform treadle.raise_invalid_work_change(
      p_task.id, v_is, p_to, format('work item %s cannot leave the status %s now', p_task.id, v_is)
    );
  end if;
end;
$$;
