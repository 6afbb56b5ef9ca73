-- waiting_for: the tasks that wait for an event.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.waiting_for(p_event text, p_key text)
returns uuid[]
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select array(
    select distinct waits.task_id
    from treadle.waits
    where waits.status = 'open' and waits.event = p_event and waits.event_key = p_key
  )
$$;

comment on function treadle.waiting_for(text, text) is
'Internal: the ids of the tasks with an open wait for an event.';

revoke all on function treadle.waiting_for(text, text) from public;
