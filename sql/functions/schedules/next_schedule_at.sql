-- next_schedule_at: return when a schedule or the triggers are due next; null if nothing is.

-- next_trigger_at: return when triggers have to be fired again without a notification.
--
-- An event that is not final yet, see next_events, is looked at again soon, and less often the
-- longer that takes. The request for notifications is renewed before it ends.
--
-- Concurrency: reads only.
create or replace function treadle.next_trigger_at()
returns timestamptz
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select
    treadle.clock() + least(
      (
        select greatest((treadle.clock() - min(unread.at)) / 2, interval '50 milliseconds')
        from (
          select events.at, events.kind
          from treadle.events
          where (events.xid, events.id) > (event_readers.xid, event_readers.id)
          order by events.xid, events.id
          limit 1000
        ) as unread
        where unread.kind = any (treadle.trigger_kinds())
        having count(*) > 0
      ),
      (
        select event_listeners.listening_until - interval '30 seconds' - clock_timestamp()
        from treadle.event_listeners
        where event_listeners.name = 'triggers'
      )
    )
  from treadle.event_readers
  where
    event_readers.name = 'triggers'
    and exists (select from treadle.triggers where triggers.paused_at is null)
$$;

create or replace function treadle.next_schedule_at()
returns timestamptz
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when exists (
        select from treadle.schedules
        where schedules.paused_at is null and schedules.next_at is null
      ) then treadle.clock()
      else least(
        (
          select min(schedules.next_at)
          from treadle.schedules
          where schedules.paused_at is null and schedules.next_at < 'infinity'
        ),
        treadle.next_trigger_at()
      )
    end
$$;

comment on function treadle.next_schedule_at() is
'The next time at which a schedule or the triggers are due.';

grant execute on function treadle.next_schedule_at() to treadle_worker;
