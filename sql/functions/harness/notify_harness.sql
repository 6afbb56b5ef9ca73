-- notify_harness: notify the harness of new tasks and results.
--
-- Concurrency: sent when the transaction commits. The notification is a hint; the harness also
-- polls.

create or replace function treadle.notify_harness()
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  select pg_notify('treadle_harness', '')
$$;

comment on function treadle.notify_harness() is
'Notify the harness, which then processes results and nudges agents at once.';

grant execute on function treadle.notify_harness() to treadle_producer, treadle_worker;
