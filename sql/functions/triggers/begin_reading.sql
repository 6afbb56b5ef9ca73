-- begin_reading: make sure that triggers read events from now on.
--
-- While no trigger was active nobody read: what happened meanwhile is passed by.
--
-- Concurrency: waits for whoever fires triggers now.
-- Lock order:  event_readers.
-- Raises:      nothing.

create or replace function treadle.begin_reading()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from treadle.triggers where triggers.paused_at is null) then
    return;
  end if;
  insert into treadle.event_readers (name, xid, id)
  values ('triggers', treadle.settled_before(), 0)
  on conflict (name) do update
  set xid = excluded.xid, id = excluded.id
  where (event_readers.xid, event_readers.id) < (excluded.xid, excluded.id);
end;
$$;

comment on function treadle.begin_reading() is
'Internal: where the first trigger begins to read events.';

revoke all on function treadle.begin_reading() from public;
