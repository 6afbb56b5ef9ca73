-- fire_trigger: fire a trigger manually on an event that it missed.
--
-- The filter and the limits apply, and an event on which it has already fired is rejected.
--
-- Concurrency: waits for a session that fires triggers; of two concurrent calls one is rejected.
-- Lock order:  event_readers, tasks, lanes, dags, triggers, then the history.
-- Raises:      TR001 invalid argument, TR212 unknown trigger.

create or replace function treadle.fire_trigger(
  p_name   text,
  p_event  bigint,
  p_actor  text default null
)
returns table (id uuid, event_id bigint, task_id uuid, dag_id uuid, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now     timestamptz := treadle.clock();
  v_trigger treadle.triggers;
  v_event   treadle.events;
  v_fire    treadle.trigger_fires;
begin
  perform from treadle.event_readers where event_readers.name = 'triggers' for update;
  v_trigger := treadle.find_trigger(p_name);
  v_event := treadle.find_event(p_event);
  perform treadle.ensure_durable();
  v_fire := treadle.try_fire(v_trigger, v_event, v_now);
  if v_fire.verdict is null or v_event.kind <> v_trigger.on_event then
    perform treadle.raise_error(
      format('trigger %s does not fire on event %s', p_name, p_event),
      jsonb_build_object('argument', 'event', 'name', p_name),
      'It has already fired, or the event does not match. To check: treadle triggers test'
    );
  end if;
  perform treadle.record_fire_counts(array[v_fire], v_now);
  insert into treadle.events (at, kind, actor, key, data)
  values (
    v_now, 'trigger.fired', coalesce(p_actor, session_user), p_name,
    jsonb_build_object('event_id', p_event)
  );
  return query select v_fire.trigger_id, v_fire.event_id, v_fire.task_id, v_fire.dag_id,
    v_fire.problem;
end;
$$;

comment on function treadle.fire_trigger(text, bigint, text) is
'Fire a trigger on an event that it missed; returns what it created.';

grant execute on function treadle.fire_trigger(text, bigint, text) to treadle_operator;
