-- pause_trigger: stop a trigger until it is resumed.
--
-- Concurrency: one row; a fire in progress is finished.
-- Lock order:  triggers.
-- Raises:      TR001 invalid argument, TR212 unknown trigger.

create or replace function treadle.pause_trigger(
  p_name    text,
  p_reason  text default null,
  p_actor   text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger treadle.triggers := treadle.find_trigger(p_name);
  v_actor   text := coalesce(p_actor, session_user);
begin
  perform treadle.check_actor(v_actor, p_reason);
  update treadle.triggers
  set
    paused_at = coalesce(triggers.paused_at, treadle.clock()),
    paused_by = v_actor,
    paused_reason = coalesce(p_reason, triggers.paused_reason)
  where triggers.id = v_trigger.id;
  insert into treadle.events (at, kind, actor, key, data)
  values (
    treadle.clock(), 'trigger.paused', v_actor, p_name, jsonb_build_object('reason', p_reason)
  );
end;
$$;

comment on function treadle.pause_trigger(text, text, text) is
'Pause a trigger; events that occur while it is paused are skipped.';

-- resume_trigger: resume a paused trigger; it fires on new events only.
--
-- Lock order:  event_readers, event_listeners, triggers.
-- Raises:      TR212 unknown trigger.
create or replace function treadle.resume_trigger(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_trigger treadle.triggers;
begin
  perform treadle.ensure_trigger_reader();
  -- Before the trigger is locked: see the lock order.
  perform treadle.listen_for_trigger(triggers.on_event)
  from treadle.triggers
  where triggers.name = p_name and triggers.paused_at is not null;
  v_trigger := treadle.find_trigger(p_name);
  if v_trigger.paused_at is null then
    return;
  end if;
  update treadle.triggers
  set active_at = treadle.clock(), paused_at = null, paused_by = null, paused_reason = null
  where triggers.id = v_trigger.id;
  insert into treadle.events (at, kind, actor, key)
  values (treadle.clock(), 'trigger.resumed', coalesce(p_actor, session_user), p_name);
end;
$$;

comment on function treadle.resume_trigger(text, text) is
'Resume a trigger; events that occurred while it was paused are skipped.';

grant execute on function treadle.pause_trigger(text, text, text) to treadle_operator;
grant execute on function treadle.resume_trigger(text, text) to treadle_operator;
