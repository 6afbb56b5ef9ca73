-- audit_tasks: write one event per task, for queues with full audit.

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

-- has_event_consumer: return whether a consumer waits for an optional kind of event.
--
-- With a type and a queue, it checks for such a task. A webhook or listener for all kinds does not
-- count, because it receives what is written anyway; nor do the listeners of triggers and webhooks
-- themselves. Written in plpgsql, which caches its plan.
create or replace function treadle.has_event_consumer(
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
    -- A paused trigger counts as well: its events wait for it.
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

-- emit_completed_events: emit events for completed tasks if a consumer waits for them.
--
-- Queues with full audit already have these events.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  events.
create or replace function treadle.emit_completed_events(p_ids uuid[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if not treadle.has_event_consumer('task.completed') then
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
    and treadle.has_event_consumer('task.completed', tasks.type, tasks.queue)
  order by tasks.id;
end;
$$;
