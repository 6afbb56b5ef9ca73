-- fire_triggers: enqueue the tasks and DAGs of triggers for new events.
--
-- A trigger that cannot fire does not stop the others: its problem is returned, stored on its row
-- and emitted as an event. Fires that met a full queue are retried first, see retry_fires.
--
-- Concurrency: one session reads at a time; others return at once. The reader's cursor moves in the
-- same transaction that enqueues, so each event counts exactly once. Events of uncommitted
-- transactions are waited for and never skipped.
-- Lock order:  event_readers (skips locked rows), event_listeners, tasks, lanes, dags, triggers,
-- then the history.

-- fire_events: fire all triggers that match these events, in the order of the events.
--
-- First all in one subtransaction; if one of them fails, again one by one, each in its own.
--
-- Concurrency: the caller has locked the cursor of the reader.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      40xxx, 53xxx, 55P03, 57xxx.
create or replace function treadle.fire_events(p_events treadle.events[], p_now timestamptz)
returns treadle.trigger_fires[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pairs cursor for
    select triggers as cause, event
    from unnest(p_events) as event
    inner join treadle.triggers
      on event.kind = triggers.on_event and event.at >= triggers.active_at
    where triggers.paused_at is null
    order by event.xid, event.id, triggers.id;
  v_fires treadle.trigger_fires[] := '{}';
begin
  begin
    for v_pair in v_pairs loop
      v_fires := v_fires || treadle.fire_one(v_pair.cause, v_pair.event, p_now);
    end loop;
  exception
    when transaction_rollback or lock_not_available or operator_intervention
      or insufficient_resources then
      raise;
    when others then
      v_fires := '{}';
      for v_pair in v_pairs loop
        v_fires := v_fires || treadle.try_fire(v_pair.cause, v_pair.event, p_now);
      end loop;
  end;
  return array(select fire from unnest(v_fires) as fire where fire.verdict is not null);
end;
$$;

-- retry_fires: retry fires that met a full queue, oldest first; those still waiting are not
-- returned.
--
-- If the queue is full again, the other fires of that trigger wait too. Fires of a paused or
-- changed trigger cannot be retried and become failures.
--
-- Concurrency: the caller has locked the cursor of the reader: one session at a time.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      40xxx, 53xxx, 55P03, 57xxx.
create or replace function treadle.retry_fires(p_now timestamptz)
returns treadle.trigger_fires[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  c_most  constant integer := 100;
  v_wait  record;
  v_full  uuid[] := '{}';
  v_fire  treadle.trigger_fires;
  v_fires treadle.trigger_fires[] := '{}';
begin
  for v_wait in
    select triggers as cause, event, fire
    from treadle.triggers
    cross join lateral (
      select fires as fire
      from treadle.trigger_fires as fires
      where fires.trigger_id = triggers.id and fires.verdict = 'waiting'
      order by fires.event_id
      limit c_most
    ) as waiting
    left join treadle.events as event on (waiting.fire).event_id = event.id
    order by triggers.id, (waiting.fire).event_id
  loop
    continue when (v_wait.cause).id = any (v_full);
    v_fire := null;
    if (v_wait.cause).paused_at is null and (v_wait.cause).on_event = (v_wait.event).kind then
      v_fire := treadle.try_fire(v_wait.cause, v_wait.event, p_now);
    end if;
    if v_fire.verdict is null then
      v_fire := v_wait.fire;
      v_fire.verdict := 'failed';
      v_fire := treadle.record_fire(v_fire);
    end if;
    if v_fire.verdict = 'waiting' then
      v_full := v_full || v_fire.trigger_id;
    else
      v_fires := v_fires || v_fire;
    end if;
  end loop;
  return v_fires;
end;
$$;

-- renew_trigger_listener: register as a listener for the event kinds of triggers.
--
-- Concurrency: the row is locked before the kinds are read, so that the kind of a trigger that is
-- being defined is not lost.
-- Lock order:  event_listeners.
create or replace function treadle.renew_trigger_listener()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if exists (
    select from treadle.event_listeners
    where
      event_listeners.name = 'triggers'
      and event_listeners.kinds = treadle.trigger_kinds()
      and event_listeners.listening_until > clock_timestamp() + interval '30 seconds'
  ) then
    return;
  end if;
  insert into treadle.event_listeners (name, listening_until, kinds)
  values ('triggers', clock_timestamp(), '{}')
  on conflict (name) do update set kinds = event_listeners.kinds;
  perform treadle.listen_events('triggers', 60, treadle.trigger_kinds());
end;
$$;

-- record_fire_counts: update the counters of triggers and emit events about problems.
--
-- Each failure is an event; a reached limit is an event at most once an hour. A fire that waits for
-- a full queue is reported only when it fails.
--
-- Concurrency: the triggers are updated after everything was enqueued.
-- Lock order:  triggers, by id; events.
create or replace function treadle.record_fire_counts(
  p_fires  treadle.trigger_fires[],
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fire treadle.trigger_fires;
  v_report boolean;
  v_name text;
begin
  for v_fire in
    select fire.*
    from unnest(p_fires) with ordinality as fire (
      trigger_id, event_id, fired_at, verdict, task_id, dag_id, depth, problem, at
    )
    order by fire.trigger_id, fire.at
  loop
    select
      triggers.name,
      v_fire.verdict = 'failed'
      or (
        v_fire.verdict = 'refused'
        and coalesce(triggers.refused_at < p_now - interval '1 hour', true)
      )
    into v_name, v_report
    from treadle.triggers
    where triggers.id = v_fire.trigger_id
    for no key update;

    update treadle.triggers
    set
      fired = triggers.fired + (v_fire.verdict = 'fired')::integer,
      refused = triggers.refused + (v_fire.verdict = 'refused')::integer,
      failed = triggers.failed + (v_fire.verdict = 'failed')::integer,
      fired_at = case when v_fire.verdict = 'fired' then p_now else triggers.fired_at end,
      last_task = case
        when v_fire.verdict = 'fired' then v_fire.task_id else triggers.last_task
      end,
      last_dag = case when v_fire.verdict = 'fired' then v_fire.dag_id else triggers.last_dag end,
      last_error = coalesce(v_fire.problem, triggers.last_error),
      error_at = case when v_fire.problem is null then triggers.error_at else p_now end,
      refused_at = case
        when v_fire.verdict = 'refused' and v_report then p_now else triggers.refused_at
      end
    where triggers.id = v_fire.trigger_id;

    insert into treadle.events (at, kind, key, data)
    select
      p_now, 'trigger.' || v_fire.verdict, v_name,
      jsonb_build_object('event_id', v_fire.event_id, 'problem', v_fire.problem)
    where v_report and v_fire.problem is not null;
  end loop;
end;
$$;

create or replace function treadle.fire_triggers(p_limit integer default 500)
returns table (id uuid, event_id bigint, task_id uuid, dag_id uuid, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  c_rounds constant integer := 20;
  v_now    timestamptz := treadle.clock();
  v_place  treadle.event_readers;
  v_events treadle.events[];
  v_fires  treadle.trigger_fires[];
begin
  if not exists (select from treadle.triggers where triggers.paused_at is null) then
    return;
  end if;
  select event_readers.*
  into v_place
  from treadle.event_readers
  where event_readers.name = 'triggers'
  for update skip locked;
  if not found then
    return;
  end if;
  perform treadle.ensure_durable();
  perform treadle.renew_trigger_listener();
  v_fires := treadle.retry_fires(v_now);

  for v_round in 1..c_rounds loop
    v_events := array(
      select next from treadle.next_events(v_place.xid, v_place.id, p_limit) as next
    );
    exit when v_events = '{}';
    v_fires := v_fires || treadle.fire_events(v_events, v_now);
    v_place.xid := v_events[cardinality(v_events)].xid;
    v_place.id := v_events[cardinality(v_events)].id;
    exit when cardinality(v_fires) >= p_limit or cardinality(v_events) < p_limit;
  end loop;

  perform treadle.record_fire_counts(v_fires, v_now);
  update treadle.event_readers
  set xid = v_place.xid, id = v_place.id, read_at = v_now
  where
    event_readers.name = 'triggers'
    and (event_readers.xid, event_readers.id) is distinct from (v_place.xid, v_place.id);
  return query
  select fire.trigger_id, fire.event_id, fire.task_id, fire.dag_id, fire.problem
  from unnest(v_fires) as fire;
end;
$$;

comment on function treadle.fire_triggers(integer) is
'Enqueue tasks and DAGs for new events; returns what each trigger created.';

grant execute on function treadle.fire_triggers(integer) to treadle_worker;
