-- tend_triggers: ask to be told of the events of triggers, and forget what they did long ago.
--
-- Concurrency: the caller holds the place among the events: one session at a time.
-- Lock order:  trigger_fires, event_listeners.
-- Raises:      nothing.

create or replace function treadle.tend_triggers(p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
as $$
declare
  v_kinds text[] := array(
    select distinct triggers.on_event
    from treadle.triggers
    where triggers.paused_at is null
    order by triggers.on_event
  );
begin
  if not exists (
    select from treadle.event_listeners
    where
      event_listeners.name = 'triggers' and event_listeners.kinds = v_kinds
      and event_listeners.listening_until > clock_timestamp() + interval '30 seconds'
  ) then
    perform treadle.listen_events('triggers', 60, v_kinds);
  end if;

  delete from treadle.trigger_fires
  where
    trigger_fires.ctid = any (
      array(
        select old.ctid
        from treadle.triggers
        cross join lateral (
          select trigger_fires.ctid
          from treadle.trigger_fires
          where
            trigger_fires.trigger_id = triggers.id
            and trigger_fires.fired_at < p_now - interval '30 days'
          order by trigger_fires.fired_at
          limit 100
        ) as old
      )
    );
end;
$$;

comment on function treadle.tend_triggers(timestamptz) is
'Internal: the listening of triggers, and the end of their records after 30 days.';

revoke all on function treadle.tend_triggers(timestamptz) from public;
