-- define_trigger: when an event, then a task or a DAG; what is not named stays as it was.
--
-- select treadle.define_trigger('after-crawl', '{
--   "on": "task.completed", "filter": {"type": "crawl"},
--   "task": {"type": "summarise", "spec": {"text": {"$event": "output.text"}}}
-- }');
--
-- The filter is what the event must contain. With failure_rate it fires when a type fails too
-- often: {"type": "crawl", "window_s": 3600, "limit": 0.3, "min_attempts": 20}. A limit that is
-- changed is looked at anew.
--
-- Concurrency: one row; two at the same time, one after the other. What happened before the
--              trigger was made does not count.
-- Lock order:  event_readers, tasks, lanes, dags (undone), triggers.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR203 unknown type, and what
--              enqueue_tasks and create_dag raise.

create or replace function treadle.define_trigger(
  p_name      text,
  p_settings  jsonb,
  p_actor     text default null
)
returns uuid
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
  perform treadle.begin_reading();
  select triggers.* into v_old from treadle.triggers where triggers.name = p_name;
  v_new := treadle.trigger_from(v_old, p_name, p_settings, v_actor);
  perform treadle.check_trigger(v_new);
  perform treadle.check_template(v_new);

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
    );
  if found then
    insert into treadle.events (at, kind, actor, key, data)
    values (
      v_new.updated_at, 'trigger.set', v_actor, p_name, jsonb_build_object('on', v_new.on_event)
    );
  end if;
  return (select triggers.id from treadle.triggers where triggers.name = p_name);
end;
$$;

comment on function treadle.define_trigger(text, jsonb, text) is
'Make or change a trigger: on which event and filter, which task or DAG; returns its id.';

revoke all on function treadle.define_trigger(text, jsonb, text) from public;
grant execute on function treadle.define_trigger(text, jsonb, text) to treadle_operator;
