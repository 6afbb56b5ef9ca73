-- fire_events: every trigger that wants one of these events, in the order of the events.
--
-- All at once; when one of them fails, again one by one: so many subtransactions only then.
--
-- Concurrency: the caller holds the place among the events.
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

comment on function treadle.fire_events(treadle.events[], timestamptz) is
'Internal: what triggers make of some events.';

revoke all on function treadle.fire_events(treadle.events[], timestamptz) from public;
