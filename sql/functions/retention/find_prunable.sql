-- find_prunable: tasks whose time is over, in the order of their places, from a place on.
--
-- At most p_limit of them, from at most 2048 pages; place is where the next look begins, null at
-- the end of the table. In a table where no queue lets anything go, that is at once.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.find_prunable(p_after tid, p_limit integer, p_skip uuid[])
returns treadle.found_tasks
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  c_pages constant bigint := 2048;
  v_pages bigint := pg_relation_size('treadle.tasks') / current_setting('block_size')::bigint;
  v_until bigint := trim(leading '(' from split_part(p_after::text, ',', 1))::bigint + c_pages;
  v_found treadle.found_tasks := row(null, '{}');
begin
  if not exists (
    select from treadle.queues
    where num_nonnulls(
      queues.keep_completed_s, queues.keep_cancelled_s, queues.keep_dead_s
    ) > 0
  ) then
    return v_found;
  end if;

  select max(found.place), coalesce(array_agg(found.id), '{}')
  into v_found.place, v_found.ids
  from (
    select prunable_tasks.place, prunable_tasks.id
    from treadle.prunable_tasks
    where
      prunable_tasks.place > p_after
      and prunable_tasks.place < format('(%s,0)', least(v_until, 4294967295))::tid
      and prunable_tasks.id <> all (p_skip)
    limit p_limit
  ) as found;
  if cardinality(v_found.ids) < p_limit then
    v_found.place := case
      when v_until < v_pages then format('(%s,0)', v_until)::tid
    end;
  end if;
  return v_found;
end;
$$;

comment on function treadle.find_prunable(tid, integer, uuid[]) is
'Internal: the next finished tasks that are older than their queues keep them.';

revoke all on function treadle.find_prunable(tid, integer, uuid[]) from public;
