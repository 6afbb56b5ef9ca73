-- has_news: whether there are events that a webhook has not looked at.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.has_news(p_name text)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
select exists (
  select
  from treadle.event_readers
  cross join lateral treadle.next_events(event_readers.xid, event_readers.id, 1) as news
  where event_readers.name = 'webhook:' || p_name
)
$$;

comment on function treadle.has_news(text) is
'Internal: says whether a webhook has something to look at.';

revoke all on function treadle.has_news(text) from public;
