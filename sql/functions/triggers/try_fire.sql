-- try_fire: fire one trigger on one event; what goes wrong is written down and stops nothing else.
--
-- Concurrency: a lock that is not to be had is not the trigger's fault: that is for another try.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      40001, 40P01, 55P03.

create or replace function treadle.try_fire(
  p_trigger  treadle.triggers,
  p_event    treadle.events,
  p_now      timestamptz
)
returns treadle.trigger_fires
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_fire treadle.trigger_fires;
begin
  return treadle.fire_one(p_trigger, p_event, p_now);
exception
  when serialization_failure or deadlock_detected or lock_not_available then
    raise;
  when others then
    v_fire.trigger_id := p_trigger.id;
    v_fire.event_id := p_event.id;
    v_fire.fired_at := p_now;
    v_fire.depth := 0;
    v_fire.verdict := 'failed';
    v_fire.problem := sqlerrm;
    return treadle.keep_fire(v_fire);
end;
$$;

comment on function treadle.try_fire(treadle.triggers, treadle.events, timestamptz) is
'Internal: one trigger and one event, with the failure as an answer.';

revoke all on function treadle.try_fire(treadle.triggers, treadle.events, timestamptz) from public;
