-- rebase_events: after a dump was restored into another server, put the readers in order again.
--
-- Transactions are counted anew there: old events would look as if they were still to come, and
-- readers would pass new ones by. Who had read what stays as it was. Says how many events were
-- moved; none where all is well.
--
-- Concurrency: readers wait; to be called while nobody else is connected, or at a calm moment.
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
  -- What was written here has higher numbers than all that came with the dump.
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
'After a restore into another server: events and their readers in order again.';

grant execute on function treadle.rebase_events() to treadle_operator;
