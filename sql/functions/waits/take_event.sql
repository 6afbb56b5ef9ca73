-- take_event: end a wait with the event that it was for.
--
-- Concurrency: the caller holds the task, the topic and the wait.
-- Lock order:  waits, steps; after tasks and topics.
-- Raises:      nothing.

create or replace function treadle.take_event(p_wait treadle.waits, p_event treadle.events)
returns treadle.waits
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wait treadle.waits := treadle.end_wait(
    p_wait, 'answered', p_event.data, p_event.actor, null, p_event.id
  );
begin
  perform treadle.record_wait(
    v_wait, 'answered', p_event.actor,
    jsonb_build_object('value', p_event.data, 'note', null, 'event_id', p_event.id)
  );
  return v_wait;
end;
$$;

comment on function treadle.take_event(treadle.waits, treadle.events) is
'Internal: the payload of an event becomes the answer of a wait.';

revoke all on function treadle.take_event(treadle.waits, treadle.events) from public;
