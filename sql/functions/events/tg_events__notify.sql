-- tg_events__notify: notify listeners of new events.
--
-- Once per statement, and only while a listener asks for one of these kinds.
--
-- Concurrency: the notification is a hint; readers also poll every few seconds.

create or replace function treadle.tg_events__notify()
returns trigger
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (
    select from treadle.event_listeners
    where event_listeners.listening_until > clock_timestamp()
  ) and exists (
    select from added
    inner join treadle.event_listeners
      on event_listeners.kinds is null or added.kind = any (event_listeners.kinds)
    where event_listeners.listening_until > clock_timestamp()
  ) then
    perform pg_notify('treadle_events', '');
  end if;
  return null;
end;
$$;

comment on function treadle.tg_events__notify() is
'Trigger: sends NOTIFY treadle_events while a listener is registered.';
