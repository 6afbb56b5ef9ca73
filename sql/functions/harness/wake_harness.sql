-- wake_harness: tell the harness to look at once: at new tasks, and at results.
--
-- Concurrency: sent when the transaction commits. A hint: the harness looks by itself as well.

create or replace function treadle.wake_harness()
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select pg_notify('treadle_harness', '')
$$;

comment on function treadle.wake_harness() is
'Nudge the harness: it drains the results and nudges agents at once.';

grant execute on function treadle.wake_harness() to treadle_producer, treadle_worker;
