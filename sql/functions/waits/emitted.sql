-- emitted: the event that was emitted with this key against repeats; null when none was.
--
-- Concurrency: reads what is committed now.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.emitted(p_event text, p_dedup_key text)
returns bigint
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select events.id
  from treadle.events
  where events.kind = p_event and events.dedup_key = p_dedup_key
$$;

comment on function treadle.emitted(text, text) is
'Internal: the id of an event by its dedup_key.';

revoke all on function treadle.emitted(text, text) from public;
