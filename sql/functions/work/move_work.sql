-- move_work: bring a work item to another state, by the functions that every task goes through.
--
-- Concurrency: the caller holds the item and what depends on it.
-- Lock order:  tasks, dags, then the history.
-- Raises:      TR102 illegal transition, TR108 the agent has another item.

-- take_work: an agent has a work item in progress, and no other.
--
-- It is a claim like any other, with a token that nobody is told: the state is the fence.
--
-- Concurrency: the caller holds the item. Two items for one agent: the second waits for the first
--              to commit, in the index that allows one, and is refused.
-- Lock order:  tasks.
-- Raises:      TR102 illegal transition, TR108 the agent has another item.
create or replace function treadle.take_work(
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
    perform treadle.refuse_work(
      p_task.id, 'dispatched', 'in_progress',
      format('work item %s waits for other tasks, or for its time', p_task.id)
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
    -- How long it may take is for people to say; how long it may be silent is the lease.
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
    perform treadle.refuse(
      format('agent %s has a work item in progress already', p_agent),
      jsonb_build_object(
        'agent', p_agent, 'work_item_id', p_task.id, 'in_progress', v_other,
        'from', treadle.work_status(p_task.status), 'to', 'in_progress',
        -- For this item, as long as its agent has the other one.
        'allowed', array(
          select work_transitions.to_status
          from treadle.work_transitions
          where
            work_transitions.from_status = treadle.work_status(p_task.status)
            and work_transitions.to_status <> 'in_progress'
          order by 1
        )
      ),
      'End that one first, or block it.',
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
      perform treadle.let_go(array[p_task.id], p_now);
    when 'in_progress' then
      perform treadle.take_work(p_task, p_agent, p_stale_s, p_now);
    when 'blocked' then
      perform treadle.put_aside(p_task, 'blocked', 0, null, p_now);
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
        array[coalesce(p_notes, 'the agent said that it failed')], array['fail']
      ) as ended;
    when 'cancelled' then
      perform gone.id from treadle.cancel_tasks(array[p_task.id], p_notes, p_actor) as gone;
  end case;

  select treadle.work_status(tasks.status)
  into v_is
  from treadle.tasks
  where tasks.id = p_task.id;
  if v_is <> p_to then
    -- A node of a DAG that is being built, say.
    perform treadle.refuse_work(
      p_task.id, v_is, p_to, format('work item %s stays %s for now', p_task.id, v_is)
    );
  end if;
end;
$$;
