-- clock: the only clock that treadle uses; tests replace it.
--
-- Concurrency: reads the clock of the server, not the start time of the transaction.

-- ensure_durable: make the commit of this transaction durable, whatever synchronous_commit the
-- client has set.
--
-- off can lose the last commits in a crash, and local can lose commits that no synchronous standby
-- has received. The other values wait for at least one standby and are left alone.
--
-- Concurrency: the setting lasts until the end of the transaction. A SET clause of a function would
-- be undone before the commit, which is when the setting is read.
create or replace function treadle.ensure_durable()
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

comment on function treadle.clock() is 'The current time for leases, retries and ageing.';

-- view_clock: the same clock for views, which read it as (select treadle.view_clock()).
--
-- The subquery is evaluated once: a clock that moves on from row to row would change their order.
-- Stable: a view with a volatile function cannot be merged into the query that reads it, and a
-- condition with one cannot use an index.
create or replace function treadle.view_clock()
returns timestamptz
language sql
stable
parallel safe
return treadle.clock();

comment on function treadle.view_clock() is 'The clock of views: treadle.clock().';

grant execute on function treadle.clock() to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
grant execute on function treadle.view_clock() to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
