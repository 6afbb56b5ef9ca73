-- count_bulk: tasks that were decided about at once, counted by what they are and what became.
--
-- Reasons that differ only in ids and other names are one, and the first of them is shown.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.count_bulk(p_found treadle.bulk_task[])
returns table (queue text, type text, status text, verdict text, why text, tasks bigint)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select each.queue, each.type, each.status, each.verdict, min(each.why), count(*)
  from unnest(p_found) as each
  group by
    each.queue, each.type, each.status, each.verdict,
    regexp_replace(each.why, '''[^'']*''|[0-9a-f-]{36}', '', 'g')
  order by each.verdict, count(*) desc, each.queue, each.type, each.status
$$;

comment on function treadle.count_bulk(treadle.bulk_task[]) is
'Internal: counts by queue, type, state and verdict.';

revoke all on function treadle.count_bulk(treadle.bulk_task[]) from public;
