-- wake_gates: tell idle workers of the queues that have tasks behind gates.
--
-- Concurrency: a hint, see wake_queues.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.wake_gates(p_keys text[])
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select treadle.wake_queues(
    array(select distinct lanes.queue from treadle.lanes where lanes.gates && p_keys)
  )
$$;

comment on function treadle.wake_gates(text[]) is
'Internal: notifies the queues of all lanes behind some gates.';

revoke all on function treadle.wake_gates(text[]) from public;
