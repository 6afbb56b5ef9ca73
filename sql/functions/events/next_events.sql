-- next_events: events after a place, in an order that never changes, as far as it is certain.
--
-- Events of transactions that began after one that still runs are not shown yet: it could write
-- before them. A transaction that stays open holds the readers up, and loses them nothing; see
-- settled_before.
--
-- Concurrency: reads; whoever follows locks its own place first.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.next_events(p_xid xid8, p_id bigint, p_limit integer)
returns setof treadle.events
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select events.*
  from treadle.events
  where
    (events.xid, events.id) > (p_xid, p_id)
    and events.xid < (select treadle.settled_before())
  order by events.xid, events.id
  limit p_limit
$$;

comment on function treadle.next_events(xid8, bigint, integer) is
'Internal: what happened after a place among the events.';

revoke all on function treadle.next_events(xid8, bigint, integer) from public;
