-- audit_tasks: write one event per task, for queues whose audit is full.
--
-- Concurrency: none; the rows are those of the caller's own update.

create or replace function treadle.audit_tasks(p_rows tid[], p_what text, p_actor text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if not exists (select from treadle.queues where queues.audit = 'full') then
    return;
  end if;

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    treadle.clock(),
    'task.' || p_what,
    tasks.id,
    tasks.queue,
    p_actor,
    jsonb_build_object('status', tasks.status, 'attempt', tasks.attempt)
  from treadle.tasks
  inner join treadle.queues on tasks.queue = queues.name
  where tasks.ctid = any (p_rows) and queues.audit = 'full'
  order by tasks.id;
end;
$$;

-- wants_event: whether somebody waits for events of a kind that are not written for history alone.
--
-- With a type and a queue, whether for such a task. A webhook or a listener for everything does not
-- count: it gets what is written anyway. Nor do the listeners of triggers and webhooks themselves.
-- In plpgsql, which keeps its plan.
create or replace function treadle.wants_event(
  p_kind   text,
  p_type   text default null,
  p_queue  text default null
)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select from treadle.triggers
    where
      triggers.on_event = p_kind and triggers.paused_at is null
      and (p_type is null or coalesce(triggers.filter ->> 'type', p_type) = p_type)
      and (p_queue is null or coalesce(triggers.filter ->> 'queue', p_queue) = p_queue)
  ) or exists (
    select from treadle.webhooks
    cross join unnest(webhooks.kinds) as kinds (pattern)
    -- Also while it is paused: its events wait for it.
    where
      kinds.pattern = p_kind
      or (kinds.pattern like '_%*' and starts_with(p_kind, left(kinds.pattern, -1)))
  ) or exists (
    select from treadle.event_listeners
    where
      p_kind = any (event_listeners.kinds)
      and event_listeners.listening_until > clock_timestamp()
      and event_listeners.name not in ('triggers', 'notifier')
  );
end;
$$;

-- tell_completed: write events of completed tasks where somebody waits for them.
--
-- A queue with a full audit has them already.
--
-- Concurrency: the caller holds the tasks.
-- Lock order:  events.
create or replace function treadle.tell_completed(p_ids uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if not treadle.wants_event('task.completed') then
    return;
  end if;
  insert into treadle.events (at, kind, task_id, dag_id, queue, actor, data)
  select
    p_now, 'task.completed', tasks.id, tasks.dag_id, tasks.queue, tasks.completed_by,
    jsonb_build_object('status', tasks.status, 'attempt', tasks.attempt)
  from treadle.tasks
  inner join treadle.queues on tasks.queue = queues.name
  where
    tasks.id = any (p_ids) and queues.audit <> 'full'
    and treadle.wants_event('task.completed', tasks.type, tasks.queue)
  order by tasks.id;
end;
$$;
