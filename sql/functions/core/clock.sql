-- clock: the one clock of treadle; tests put another in its place.
--
-- Concurrency: reads the server's clock, never the start of the transaction.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.clock()
returns timestamptz
language sql
volatile
parallel safe
return pg_catalog.clock_timestamp();

comment on function treadle.clock() is 'The time by which leases, retries and ages are judged.';

revoke all on function treadle.clock() from public;
grant execute on function treadle.clock() to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
