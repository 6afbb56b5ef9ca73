-- tg_events__tell: after an insert, tell those who listen that there are new events.
--
-- Once for a statement, and only while somebody listens for one of their kinds.
--
-- Concurrency: a hint; readers look every few seconds anyway.

create or replace function treadle.tg_events__tell()
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

comment on function treadle.tg_events__tell() is
'Trigger: notifies treadle_events while somebody listens.';
