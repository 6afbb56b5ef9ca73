-- place_webhook: let a new webhook begin now, or with the oldest event.
--
-- Concurrency: events of transactions that are still open count as later, so none is missed.
-- Lock order:  readers.
-- Raises:      nothing.

create or replace function treadle.place_webhook(p_name text, p_from_start boolean)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
insert into treadle.event_readers (name, xid, id)
values (
  'webhook:' || p_name,
  case
    when p_from_start then '0'::pg_catalog.xid8
    else treadle.settled_before()
  end,
  0
)
on conflict (name) do update
set xid = excluded.xid, id = 0
$$;

comment on function treadle.place_webhook(text, boolean) is
'Internal: sets where among the events a webhook begins.';

revoke all on function treadle.place_webhook(text, boolean) from public;
