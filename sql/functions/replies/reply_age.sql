-- reply_age: how long the answer to a request with a key is kept.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.reply_age()
returns interval
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select interval '24 hours'
$$;

comment on function treadle.reply_age() is 'Internal: how long a repeat is known as one.';

revoke all on function treadle.reply_age() from public;
