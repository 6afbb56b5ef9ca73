-- old_before: what is older than this need not be kept; null where it is kept for ever.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.old_before(p_kind text)
returns timestamptz
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select treadle.clock() - make_interval(secs => retention.keep_s)
  from treadle.retention
  where retention.kind = p_kind
$$;

comment on function treadle.old_before(text) is
'Internal: the age of events, agents or runs, as a moment.';

revoke all on function treadle.old_before(text) from public;
