-- read_by_all: how far every reader of the events has come; the last place where there is none.
--
-- Triggers read only while one of them is active, see begin_reading; until then they hold nothing
-- up. An event on which one of them is to be tried again is not read yet.
--
-- Concurrency: reads; a reader only ever goes on.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.read_by_all()
returns treadle.event_readers
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  with places as (
    select event_readers.*
    from treadle.event_readers
    union all
    select 'triggers', events.xid, events.id - 1, events.at
    from treadle.trigger_fires as fires
    inner join treadle.events on fires.event_id = events.id
    where fires.verdict = 'waiting'
    union all
    select 'nobody', '18446744073709551615'::xid8, 9223372036854775807, 'infinity'
  )

  select places.*
  from places
  where
    places.name <> 'triggers'
    or exists (select from treadle.triggers where triggers.paused_at is null)
  order by places.xid, places.id
  limit 1
$$;

comment on function treadle.read_by_all() is
'Internal: the place of the reader of events that is furthest behind.';

revoke all on function treadle.read_by_all() from public;
