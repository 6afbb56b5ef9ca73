-- emit_event: emit an event and resume the tasks waiting for it.
--
-- select treadle.emit_event('invoice.paid', '{"amount": 10}', '4711');
--
-- A task that starts to wait later also receives the event if the task was created before it. With
-- p_dedup_key a repeated call returns the same id and changes nothing. p_task is the task that
-- emits the event; the limits on chains of triggers use it.
--
-- Concurrency: part of the caller's transaction; the event exists if and only if that commits. No
-- waiting task is missed; a transaction with an older snapshot may fail with 40001 instead.
-- Lock order:  tasks, by id; topics, waits, then the rest.
-- Raises:      TR001 invalid argument, TR002 too large.

-- check_topic: check the name and key of an event.
--
-- Built-in kinds are reserved. The only exception is webhook.received, which receive_webhook emits
-- and tasks wait for.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_topic(p_event text, p_key text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(octet_length(p_event) between 1 and 200, false) then
    perform treadle.raise_error(
      'the name of an event must be 1 to 200 bytes long',
      jsonb_build_object('argument', 'event'),
      'For example: invoice.paid'
    );
  elsif treadle.builtin_kinds_like(p_event) <> '{}' and p_event <> 'webhook.received' then
    perform treadle.raise_error(
      format('event name %L is reserved for built-in events', p_event),
      jsonb_build_object('argument', 'event', 'event', p_event),
      'Names that begin like a built-in kind, such as task. or dag., are reserved; use another.'
    );
  elsif not coalesce(octet_length(p_key) <= 200, false) then
    perform treadle.raise_error(
      'the key of an event must be at most 200 bytes long',
      jsonb_build_object('argument', 'key'),
      'Omit the key for an event that needs none.'
    );
  end if;
end;
$$;

-- find_emitted_event: return the event that was emitted with a deduplication key; null if there is
-- none.
--
-- Concurrency: reads committed rows.
create or replace function treadle.find_emitted_event(p_event text, p_dedup_key text)
returns bigint
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select events.id
  from treadle.events
  where events.kind = p_event and events.dedup_key = p_dedup_key
$$;

-- tasks_waiting_for: find the tasks that wait for an event.
create or replace function treadle.tasks_waiting_for(p_event text, p_key text)
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select array(
    select distinct waits.task_id
    from treadle.waits
    where waits.status = 'open' and waits.event = p_event and waits.event_key = p_key
  )
$$;

-- lock_topic: lock the name and key of an event until the transaction ends.
--
-- A session that emits an event and a session that starts to wait for it both write this row, so
-- one comes after the other and sees its changes. A transaction with an older snapshot fails with
-- 40001.
--
-- Concurrency: waits for the lock.
-- Lock order:  topics, after tasks.
create or replace function treadle.lock_topic(
  p_event     text,
  p_key       text,
  p_event_id  bigint default null
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.topics (event, key, event_id)
  values (p_event, p_key, p_event_id)
  on conflict (event, key) do update
  set event_id = coalesce(excluded.event_id, topics.event_id)
$$;

-- lock_waiting_tasks: lock the tasks that wait for an event, then its topic.
--
-- A task that started to wait in between is locked last, out of order, and therefore with NOWAIT:
-- the session that holds it may be waiting for the topic. If that fails, object_in_use is raised
-- and the caller releases its locks and starts again. The last attempt waits.
--
-- Concurrency: once it returns, no further task can start to wait for this event.
-- Lock order:  tasks, by id; topics.
-- Raises:      object_in_use; the caller starts again.
create or replace function treadle.lock_waiting_tasks(p_event text, p_key text, p_last boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_tasks uuid[] := treadle.tasks_waiting_for(p_event, p_key);
  v_late  uuid[];
begin
  perform treadle.lock_tasks(v_tasks);
  perform treadle.lock_topic(p_event, p_key);
  v_late := array(
    select late.id from unnest(treadle.tasks_waiting_for(p_event, p_key)) as late (id)
    where late.id <> all (v_tasks)
  );

  if p_last then
    perform treadle.lock_tasks(v_late);
  elsif cardinality(v_late) > cardinality(array(
    select tasks.id from treadle.tasks
    where tasks.id = any (v_late)
    for no key update skip locked
  )) then
    raise object_in_use using message = 'a task that has just started to wait is locked';
  end if;
end;
$$;

-- send_event: store an event and deliver it to every task that waits for it.
--
-- A task with two waits for the event receives it once, for the older wait.
--
-- Concurrency: see lock_waiting_tasks.
-- Lock order:  tasks, by id; topics, waits, then the rest.
-- Raises:      object_in_use; the caller starts again.
create or replace function treadle.send_event(
  p_event      text,
  p_payload    jsonb,
  p_key        text,
  p_dedup_key  text,
  p_actor      text,
  p_last       boolean,
  p_task       uuid default null
)
returns bigint
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_event treadle.events;
  v_tasks uuid[];
begin
  perform treadle.lock_waiting_tasks(p_event, p_key, p_last);
  insert into treadle.events (at, kind, task_id, key, dedup_key, actor, data)
  values (treadle.clock(), p_event, p_task, p_key, p_dedup_key, p_actor, p_payload)
  on conflict (kind, dedup_key) where dedup_key is not null do nothing
  returning events.* into v_event;
  if not found then
    -- Another session emitted it at the same time.
    return treadle.find_emitted_event(p_event, p_dedup_key);
  end if;

  perform treadle.lock_topic(p_event, p_key, v_event.id);
  with taken as (
    select treadle.deliver_event(oldest, v_event) as wait
    from (
      select distinct on (waits.task_id) waits.*
      from treadle.waits
      where waits.status = 'open' and waits.event = p_event and waits.event_key = p_key
      order by waits.task_id, waits.opened_at, waits.id
    ) as oldest
  )

  select array_agg((taken.wait).task_id) into v_tasks from taken;
  perform treadle.resume_tasks(v_tasks) where v_tasks is not null;
  return v_event.id;
end;
$$;

create or replace function treadle.emit_event(
  p_event      text,
  p_payload    jsonb default '{}',
  p_key        text default '',
  p_dedup_key  text default null,
  p_actor      text default null,
  p_task       uuid default null
)
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  c_tries constant integer := 20;
  v_actor text := coalesce(p_actor, session_user);
  v_id    bigint;
begin
  perform treadle.check_topic(p_event, p_key);
  perform treadle.check_document('payload', p_payload);
  perform treadle.check_actor(v_actor);
  if octet_length(p_dedup_key) not between 1 and 200 then
    perform treadle.raise_error(
      'dedup_key must be 1 to 200 bytes long',
      jsonb_build_object('argument', 'dedup_key'),
      'Omit it for an event that may occur more than once.'
    );
  end if;
  perform treadle.ensure_durable();

  v_id := treadle.find_emitted_event(p_event, p_dedup_key);
  for v_try in 1..c_tries loop
    exit when v_id is not null;
    begin
      v_id := treadle.send_event(
        p_event, p_payload, p_key, p_dedup_key, v_actor, v_try = c_tries, p_task
      );
    exception
      -- The rollback of this attempt has released its locks.
      when object_in_use then null;
    end;
  end loop;
  return v_id;
end;
$$;

comment on function treadle.emit_event(text, jsonb, text, text, text, uuid) is
'Emit an event by name and key; returns its id.';

grant execute on function treadle.emit_event(text, jsonb, text, text, text, uuid) to
treadle_producer, treadle_worker, treadle_operator;
