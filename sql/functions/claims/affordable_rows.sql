-- affordable_rows: the first of some tasks whose costs together stay within a budget.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.affordable_rows(p_rows tid[], p_budget numeric)
returns tid[]
language sql
stable
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select coalesce(array_agg(running.ctid order by running.at), '{}')
  from (
    select
      tasks.ctid,
      picked.at,
      sum(coalesce(tasks.max_cost_usd, 0)) over (order by picked.at) as total
    from unnest(p_rows) with ordinality as picked (ctid, at)
    inner join treadle.tasks on picked.ctid = tasks.ctid
  ) as running
  where running.total <= p_budget
$$;

comment on function treadle.affordable_rows(tid[], numeric) is
'Internal: cuts a list of tasks off where their summed max_cost_usd passes the budget.';

revoke all on function treadle.affordable_rows(tid[], numeric) from public;
