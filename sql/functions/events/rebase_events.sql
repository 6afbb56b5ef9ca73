-- rebase_events: repair event cursors after a dump was restored into another server.
--
-- The new server counts transactions from a lower number: old events would seem to be in the
-- future, and readers would skip new ones. The progress of each reader is kept. Returns how many
-- events were changed; 0 if no repair was needed.
--
-- Concurrency: readers wait; call it while nothing else is connected, or at a quiet time.
-- Lock order:  event_readers, events.

create or replace function treadle.rebase_events()
returns bigint
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next  xid8 := pg_snapshot_xmax(pg_current_snapshot());
  v_last  bigint;
  v_moved bigint;
begin
  lock table treadle.event_readers in share row exclusive mode;
  -- Events written on this server have higher ids than all events from the dump.
  select max(known.id)
  into v_last
  from (
    select events.id from treadle.events where events.xid >= v_next
    union all
    select event_readers.id from treadle.event_readers where event_readers.xid >= v_next
  ) as known;
  if v_last is null then
    return 0;
  end if;

  update treadle.events
  set
    xid = (
      select (1 + count(distinct (event_readers.xid, event_readers.id)))::text::xid8
      from treadle.event_readers
      where (event_readers.xid, event_readers.id) < (events.xid, events.id)
    )
  where events.id <= v_last;
  get diagnostics v_moved = row_count;

  update treadle.event_readers
  set
    xid = (
      select (1 + count(distinct (before.xid, before.id)))::text::xid8
      from treadle.event_readers as before
      where (before.xid, before.id) < (event_readers.xid, event_readers.id)
    ),
    id = 9223372036854775807;
  return v_moved;
end;
$$;

comment on function treadle.rebase_events() is
'Repair events and reader cursors after a restore into another server.';

grant execute on function treadle.rebase_events() to treadle_operator;
