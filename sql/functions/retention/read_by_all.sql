-- read_by_all: how far every reader of the events has come; the last place where there is none.
--
-- Concurrency: reads; a reader only ever goes on.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.read_by_all()
returns treadle.event_readers
language sql
stable
set search_path = ''
as $$
  select places.*
  from (
    select event_readers.*
    from treadle.event_readers
    union all
    select 'nobody', '18446744073709551615'::xid8, 9223372036854775807, 'infinity'
  ) as places
  order by places.xid, places.id
  limit 1
$$;

comment on function treadle.read_by_all() is
'Internal: the place of the reader of events that is furthest behind.';

revoke all on function treadle.read_by_all() from public;
