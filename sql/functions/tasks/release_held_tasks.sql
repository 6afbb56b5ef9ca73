-- release_held_tasks: release tasks that were enqueued with hold.
--
-- Returns for each ready, pending (it waits for its time or for other tasks), or its state if it
-- was not held. Tasks of an open DAG wait for start_dag. Tasks of a queue with manual assignment
-- wait for their dispatcher, which gives them to an agent and logs it.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, then the history.
-- Raises:      TR102 illegal transition: manual assignment. An unknown id is returned as unknown.

-- release_held_rows: release held tasks whose DAG is not open.
--
-- With an actor each task gets an event, whatever the audit level; a dispatch has its own log.
--
-- Concurrency: rows are locked in id order.
-- Lock order:  tasks, then the history.
-- Tasks that are not held are left as they are.
create or replace function treadle.release_held_rows(
  p_ids    uuid[],
  p_now    timestamptz,
  p_actor  text default null
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_rows tid[];
begin
  with held as materialized (
    select tasks.id
    from unnest(p_ids) as wanted (id)
    inner join treadle.tasks on wanted.id = tasks.id
    where tasks.status = 'created' and not exists (
      select from treadle.dags where dags.id = tasks.dag_id and dags.status = 'open'
    )
    order by tasks.id
    for no key update of tasks
  ),

  freed as (
    update treadle.tasks
    set
      status = case
        when tasks.blocked_count > 0 or tasks.run_at > p_now then 'pending'
        else treadle.entry_status(tasks.concurrency_key, tasks.slot)
      end,
      slot = case
        when tasks.blocked_count = 0 and coalesce(tasks.run_at <= p_now, true)
          then treadle.entry_slot(tasks.concurrency_key, tasks.slot)
      end
    -- By id, not by ctid: a row that changed while its lock was waited for has a new ctid.
    where tasks.id = any (array(select held.id from held))
    returning tasks.ctid
  )

  select array_agg(freed.ctid) into v_rows from freed;
  perform treadle.notify_released(v_rows, case when p_actor is null then 'hold_released' end);
  if p_actor is not null then
    insert into treadle.events (at, kind, task_id, queue, actor, data)
    select
      p_now, 'task.hold_released', tasks.id, tasks.queue, p_actor,
      jsonb_build_object('status', tasks.status)
    from treadle.tasks
    where tasks.ctid = any (v_rows)
    order by tasks.id;
  end if;
end;
$$;

create or replace function treadle.release_held_tasks(p_ids uuid[], p_actor text default null)
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_manual jsonb;
begin
  perform treadle.ensure_durable();

  select jsonb_agg(tasks.id)
  into v_manual
  from unnest(p_ids) as wanted (id)
  inner join treadle.tasks on wanted.id = tasks.id
  inner join treadle.queues on tasks.queue = queues.name
  where queues.assignment = 'manual';
  if v_manual is not null then
    perform treadle.raise_error(
      format('work item %s cannot be released: it must be dispatched to an agent', v_manual ->> 0),
      jsonb_build_object('work_item_ids', v_manual),
      'Use PATCH /work/{id} or treadle.update_work_item with the status dispatched.',
      'TR102'
    );
  end if;

  perform treadle.release_held_rows(p_ids, treadle.clock(), coalesce(p_actor, session_user));
  return query
  select wanted.id, coalesce(tasks.status, 'unknown')
  from unnest(p_ids) with ordinality as wanted (id, at)
  left join treadle.tasks on wanted.id = tasks.id
  order by wanted.at;
end;
$$;

comment on function treadle.release_held_tasks(uuid[], text) is
'Release tasks that were enqueued with hold; returns the new state of each.';

grant execute on function treadle.release_held_tasks(uuid[], text) to
treadle_producer, treadle_operator;
