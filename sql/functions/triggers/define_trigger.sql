-- define_trigger: create or change a trigger, which enqueues a task or DAG when an event occurs.
--
-- select treadle.define_trigger('after-crawl', '{
--   "on": "task.completed", "filter": {"type": "crawl"},
--   "task": {"type": "summarise", "spec": {"text": {"$event": "output.text"}}}
-- }');
--
-- Settings that are not given stay as they are. The event must contain the filter. With
-- failure_rate it fires when a type fails too often: {"type": "crawl", "window_s": 3600, "limit":
-- 0.3, "min_attempts": 20}. A changed rate is checked from the start. Returns its id and whether it
-- is new.
--
-- Concurrency: one row; concurrent calls run one after another. Events from before the trigger was
-- created do not count.
-- Lock order:  event_readers, tasks, lanes, dags (rolled back), event_listeners, triggers.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type, and what
--              enqueue_tasks and create_dag raise.

-- find_trigger: lock and return a trigger by its name; an error if there is none.
--
-- Concurrency: the row stays locked until the transaction ends.
-- Lock order:  triggers.
-- Raises:      TR212 unknown trigger.
create or replace function treadle.find_trigger(p_name text)
returns treadle.triggers
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger treadle.triggers;
begin
  select triggers.*
  into v_trigger
  from treadle.triggers
  where triggers.name = p_name
  for no key update;
  if not found then
    perform treadle.raise_error(
      format('there is no trigger %s', left(quote_nullable(p_name), 100)),
      jsonb_build_object('name', left(p_name, 200)),
      'To list them: select name from treadle.trigger_status',
      'TR212'
    );
  end if;
  return v_trigger;
end;
$$;

-- merge_trigger_settings: return the row of a trigger with new settings applied to the old ones.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.merge_trigger_settings(
  p_old       treadle.triggers,
  p_name      text,
  p_settings  jsonb,
  p_actor     text
)
returns treadle.triggers
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_new treadle.triggers := p_old;
  v_now timestamptz := treadle.clock();
begin
  perform treadle.check_settings(
    p_settings,
    array[
      'on', 'filter', 'task', 'dag', 'failure_rate', 'max_depth', 'max_per_hour', 'description'
    ]
  );
  v_new.id := coalesce(p_old.id, treadle.uuidv7());
  v_new.name := p_name;
  v_new.created_by := coalesce(p_old.created_by, p_actor);
  v_new.created_at := coalesce(p_old.created_at, v_now);
  v_new.active_at := coalesce(p_old.active_at, v_now);
  v_new.updated_at := v_now;
  v_new.failure_rate := coalesce(p_settings -> 'failure_rate', p_old.failure_rate);
  if p_settings ?| array['task', 'dag'] then
    v_new.template := treadle.without_nulls(
      jsonb_build_object('task', p_settings -> 'task', 'dag', p_settings -> 'dag')
    );
  end if;
  v_new.on_event := coalesce(
    case when v_new.failure_rate is not null then 'type.failure_rate_exceeded' end,
    p_settings ->> 'on', p_old.on_event
  );
  v_new.filter := coalesce(
    case when v_new.failure_rate is not null then jsonb_build_object('key', p_name) end,
    p_settings -> 'filter', p_old.filter, '{}'
  );
  if p_settings ? 'description' then
    v_new.description := p_settings ->> 'description';
  end if;
  v_new.max_depth := coalesce((p_settings ->> 'max_depth')::smallint, p_old.max_depth, 5);
  v_new.max_per_hour := case
    when p_settings ? 'max_per_hour' then (p_settings ->> 'max_per_hour')::integer
    when p_old.id is not null then p_old.max_per_hour
    else 1000
  end;
  return v_new;
exception
  when data_exception then
    perform treadle.raise_error(
      format('this trigger cannot be defined: %s', sqlerrm),
      jsonb_build_object('argument', 'settings'), 'max_depth and max_per_hour must be numbers.'
    );
end;
$$;

-- ensure_trigger_reader: make triggers read events from now on.
--
-- While no trigger was active, no session read events; those events are skipped.
--
-- Concurrency: waits for a session that fires triggers.
-- Lock order:  event_readers.
create or replace function treadle.ensure_trigger_reader()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from treadle.triggers where triggers.paused_at is null) then
    return;
  end if;
  insert into treadle.event_readers (name, xid, id)
  values ('triggers', treadle.stable_xid(), 0)
  on conflict (name) do update
  set xid = excluded.xid, id = excluded.id
  where (event_readers.xid, event_readers.id) < (excluded.xid, excluded.id);
end;
$$;

-- trigger_kinds: return the event kinds that active triggers fire on, in order.
create or replace function treadle.trigger_kinds()
returns text[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select array(
    select distinct triggers.on_event
    from treadle.triggers
    where triggers.paused_at is null
    order by triggers.on_event
  )
$$;

-- listen_for_trigger: request NOTIFY for the event kind of a trigger, and wake the schedulers.
--
-- The request commits together with the trigger, so that the first event already wakes a scheduler.
-- Schedulers renew it, see renew_trigger_listener.
--
-- Lock order:  event_listeners.
create or replace function treadle.listen_for_trigger(p_kind text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into treadle.event_listeners (name, listening_until, kinds)
  values ('triggers', clock_timestamp() + interval '60 seconds', array[p_kind])
  on conflict (name) do update
  set
    listening_until = greatest(event_listeners.listening_until, excluded.listening_until),
    kinds = array(
      select distinct kind
      from unnest(event_listeners.kinds || excluded.kinds) as kind
      order by kind
    );
  perform pg_notify('treadle_schedules', '');
end;
$$;

create or replace function treadle.define_trigger(
  p_name       text,
  p_settings   jsonb,
  p_actor      text default null,
  out id       uuid,
  out created  boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_actor text := coalesce(p_actor, session_user);
  v_old   treadle.triggers;
  v_new   treadle.triggers;
begin
  perform treadle.check_actor(v_actor);
  perform treadle.ensure_trigger_reader();
  select triggers.* into v_old from treadle.triggers where triggers.name = p_name;
  v_new := treadle.merge_trigger_settings(v_old, p_name, p_settings, v_actor);
  perform treadle.check_trigger(v_new);
  perform treadle.check_template(v_new);
  perform treadle.listen_for_trigger(v_new.on_event);

  insert into treadle.triggers (
    id, name, description, on_event, filter, template, failure_rate, max_depth, max_per_hour,
    created_by, created_at, updated_at, active_at
  )
  values (
    v_new.id, v_new.name, v_new.description, v_new.on_event, v_new.filter, v_new.template,
    v_new.failure_rate, v_new.max_depth, v_new.max_per_hour, v_new.created_by, v_new.created_at,
    v_new.updated_at, v_new.active_at
  )
  on conflict (name) do update
  set
    description = excluded.description, on_event = excluded.on_event, filter = excluded.filter,
    template = excluded.template, failure_rate = excluded.failure_rate,
    max_depth = excluded.max_depth, max_per_hour = excluded.max_per_hour,
    updated_at = excluded.updated_at,
    active_at = case
      when triggers.on_event = excluded.on_event then triggers.active_at else excluded.updated_at
    end,
    checked_at = case
      when triggers.failure_rate = excluded.failure_rate then triggers.checked_at
    end,
    passed_at = case
      when triggers.failure_rate = excluded.failure_rate then triggers.passed_at
    end
  where
    (
      triggers.description, triggers.on_event, triggers.filter, triggers.template,
      triggers.failure_rate, triggers.max_depth, triggers.max_per_hour
    ) is distinct from (
      excluded.description, excluded.on_event, excluded.filter, excluded.template,
      excluded.failure_rate, excluded.max_depth, excluded.max_per_hour
    )
  -- Only a row that this statement inserts has no xmax.
  returning triggers.xmax = 0 into created;
  if found then
    insert into treadle.events (at, kind, actor, key, data)
    values (
      v_new.updated_at, 'trigger.defined', v_actor, p_name, jsonb_build_object('on', v_new.on_event)
    );
  end if;
  created := coalesce(created, false);
  id := (select triggers.id from treadle.triggers where triggers.name = p_name);
end;
$$;

comment on function treadle.define_trigger(text, jsonb, text) is
'Create or change a trigger: event kind, filter, and the task or DAG to enqueue.';

grant execute on function treadle.define_trigger(text, jsonb, text) to treadle_operator;
