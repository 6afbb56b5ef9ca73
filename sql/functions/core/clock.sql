-- clock: the one clock of treadle; tests put another in its place.
--
-- Concurrency: reads the server's clock, never the start of the transaction.

-- keep_durable: what is acknowledged survives a crash, whatever the client has set.
--
-- off loses the last commits in a crash, and local those that no synchronous standby has when the
-- primary is lost. The other values wait for at least one standby and stay.
--
-- Concurrency: lasts to the end of the transaction. A SET clause of a function would not: it is
--              undone before the commit, where the setting is read.
create or replace function treadle.keep_durable()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_catalog.current_setting('synchronous_commit') in ('off', 'local') then
    perform pg_catalog.set_config('synchronous_commit', 'on', true);
  end if;
end;
$$;

create or replace function treadle.clock()
returns timestamptz
language sql
volatile
parallel safe
return pg_catalog.clock_timestamp();

comment on function treadle.clock() is 'The time by which leases, retries and ages are judged.';

grant execute on function treadle.clock() to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
