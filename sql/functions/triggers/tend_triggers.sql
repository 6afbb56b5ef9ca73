-- tend_triggers: ask to be told of the events of triggers.
--
-- Concurrency: the caller holds the place among the events: one session at a time.
-- Lock order:  event_listeners.
-- Raises:      nothing.

create or replace function treadle.tend_triggers()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
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
end;
$$;

comment on function treadle.tend_triggers() is
'Internal: the listening of triggers.';

revoke all on function treadle.tend_triggers() from public;
