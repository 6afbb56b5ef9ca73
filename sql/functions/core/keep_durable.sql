-- keep_durable: what is acknowledged survives a crash, whatever the client has set.
--
-- Concurrency: lasts to the end of the transaction. A SET clause of a function would not: it is
--              undone before the commit, where the setting is read.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.keep_durable()
returns void
language plpgsql
volatile
as $$
begin
  if pg_catalog.current_setting('synchronous_commit') = 'off' then
    perform pg_catalog.set_config('synchronous_commit', 'on', true);
  end if;
end;
$$;

comment on function treadle.keep_durable() is
'Internal: turns synchronous_commit on for this transaction where the client had it off.';

revoke all on function treadle.keep_durable() from public;
