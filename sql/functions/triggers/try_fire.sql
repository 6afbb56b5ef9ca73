-- try_fire: fire one trigger on one event; what goes wrong is written down and stops nothing else.
--
-- A full queue is no failure for an hour: it is tried again, see retry_fires.
--
-- Concurrency: trouble that passes (deadlock, lock timeout, a server that stops or has no room) is
--              not the trigger's fault: that is for another try.
-- Lock order:  tasks, lanes, dags, then the history.
-- Raises:      40xxx, 53xxx, 55P03, 57xxx.

create or replace function treadle.try_fire(
  p_trigger  treadle.triggers,
  p_event    treadle.events,
  p_now      timestamptz
)
returns treadle.trigger_fires
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_patience constant interval := '1 hour';
  v_fire     treadle.trigger_fires;
begin
  return treadle.fire_one(p_trigger, p_event, p_now);
exception
  when transaction_rollback or lock_not_available or operator_intervention
    or insufficient_resources then
    raise;
  when others then
    v_fire.trigger_id := p_trigger.id;
    v_fire.event_id := p_event.id;
    v_fire.depth := 0;
    v_fire.fired_at := coalesce(
      (
        select trigger_fires.fired_at
        from treadle.trigger_fires
        where
          trigger_fires.trigger_id = p_trigger.id and trigger_fires.event_id = p_event.id
          and trigger_fires.verdict = 'waiting'
      ),
      p_now
    );
    v_fire.verdict := 'failed';
    v_fire.problem := treadle.mask_text(sqlerrm);
    if sqlstate = 'TR105' and v_fire.fired_at > p_now - c_patience then
      v_fire.verdict := 'waiting';
      v_fire.problem := left(treadle.mask_text(sqlerrm), 900) || '; it is tried again for an hour';
    end if;
    return treadle.keep_fire(v_fire);
end;
$$;

comment on function treadle.try_fire(treadle.triggers, treadle.events, timestamptz) is
'Internal: one trigger and one event, with the failure as an answer.';

revoke all on function treadle.try_fire(treadle.triggers, treadle.events, timestamptz) from public;
