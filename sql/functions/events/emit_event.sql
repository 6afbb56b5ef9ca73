-- emit_event: say that something happened; every task that waits for it goes on.
--
-- select treadle.emit_event('invoice.paid', '{"amount": 10}', '4711');
--
-- A task that begins to wait later takes it too, if it was made before. With p_dedup_key a repeat
-- returns the same id and changes nothing. p_task is the task that says so, for the bounds of
-- triggers: what follows from it follows from that task.
--
-- Concurrency: part of the caller's transaction: it happened exactly if that commits. Nobody who
--              waits is missed; a transaction with an older view may fail with 40001 instead.
-- Lock order:  tasks, by id; topics, waits, then the rest.
-- Raises:      TR001 invalid argument, TR002 too large.

-- check_topic: refuse the name or key of an event that nobody can emit.
--
-- Kinds that treadle writes itself are its own. Only webhook.received can be emitted: it is what
-- receive_webhook emits, and tasks wait for it.
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
    perform treadle.refuse(
      'the name of an event must have 1 to 200 bytes',
      jsonb_build_object('argument', 'event'),
      'For example: invoice.paid'
    );
  elsif treadle.kinds_beside(p_event) <> '{}' and p_event <> 'webhook.received' then
    perform treadle.refuse(
      format('event %L has a name that only treadle uses', p_event),
      jsonb_build_object('argument', 'event', 'event', p_event),
      'Names that begin with a noun of treadle, like task. or dag., are taken; use another.'
    );
  elsif not coalesce(octet_length(p_key) <= 200, false) then
    perform treadle.refuse(
      'the key of an event must have at most 200 bytes',
      jsonb_build_object('argument', 'key'),
      'Leave it out for an event about nothing in particular.'
    );
  end if;
end;
$$;

-- emitted: the event that was emitted with this key against repeats; null when none was.
--
-- Concurrency: reads what is committed now.
create or replace function treadle.emitted(p_event text, p_dedup_key text)
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

-- waiting_for: the tasks that wait for an event.
--
-- Concurrency: reads.
create or replace function treadle.waiting_for(p_event text, p_key text)
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

-- touch_topic: hold an event's name and key until the transaction ends.
--
-- Who emits and who begins to wait both write this row, so one comes after the other and sees what
-- it did. In a transaction with an older view of the database it fails with 40001 instead.
--
-- Concurrency: waits for who holds it.
-- Lock order:  topics, after tasks.
create or replace function treadle.touch_topic(
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

-- lock_waiting: lock the tasks that wait for an event, then its topic.
--
-- A task that began to wait between the two is locked last, out of order, and so without waiting:
-- whoever holds it may be waiting for the topic. When that fails, object_in_use is raised, and the
-- caller gives up what it locked and begins again; the last time it waits after all.
--
-- Concurrency: once it returns, no task begins to wait for this event.
-- Lock order:  tasks, by id; topics.
-- Raises:      object_in_use, to begin again.
create or replace function treadle.lock_waiting(p_event text, p_key text, p_last boolean)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_tasks uuid[] := treadle.waiting_for(p_event, p_key);
  v_late  uuid[];
begin
  perform treadle.lock_tasks(v_tasks);
  perform treadle.touch_topic(p_event, p_key);
  v_late := array(
    select late.id from unnest(treadle.waiting_for(p_event, p_key)) as late (id)
    where late.id <> all (v_tasks)
  );

  if p_last then
    perform treadle.lock_tasks(v_late);
  elsif cardinality(v_late) > cardinality(array(
    select tasks.id from treadle.tasks
    where tasks.id = any (v_late)
    for no key update skip locked
  )) then
    raise object_in_use using message = 'a task that began to wait just now is locked';
  end if;
end;
$$;

-- send_event: store an event and hand it to every task that waits for it.
--
-- A task with two waits for it takes it once, for the older one.
--
-- Concurrency: see lock_waiting.
-- Lock order:  tasks, by id; topics, waits, then the rest.
-- Raises:      object_in_use, to begin again.
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
  perform treadle.lock_waiting(p_event, p_key, p_last);
  insert into treadle.events (at, kind, task_id, key, dedup_key, actor, data)
  values (treadle.clock(), p_event, p_task, p_key, p_dedup_key, p_actor, p_payload)
  on conflict (kind, dedup_key) where dedup_key is not null do nothing
  returning events.* into v_event;
  if not found then
    -- Emitted at the same moment by somebody else.
    return treadle.emitted(p_event, p_dedup_key);
  end if;

  perform treadle.touch_topic(p_event, p_key, v_event.id);
  with taken as (
    select treadle.take_event(oldest, v_event) as wait
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
    perform treadle.refuse(
      'dedup_key must have 1 to 200 bytes',
      jsonb_build_object('argument', 'dedup_key'),
      'Leave it out for an event that may be repeated.'
    );
  end if;
  perform treadle.keep_durable();

  v_id := treadle.emitted(p_event, p_dedup_key);
  for v_try in 1..c_tries loop
    exit when v_id is not null;
    begin
      v_id := treadle.send_event(
        p_event, p_payload, p_key, p_dedup_key, v_actor, v_try = c_tries, p_task
      );
    exception
      -- What this try locked is free again.
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
