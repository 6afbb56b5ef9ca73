-- rerank_tasks: give waiting tasks a new rank whose deadline has come nearer by a step.
--
-- A row that cannot be moved does not stop the others: it is reported in problem, and left out when
-- its id is passed in p_skip. While this is late, a task goes on gaining at its old pace.
--
-- Concurrency: rows locked by others are skipped.
-- Lock order:  tasks, lanes.
-- Raises:      nothing.

create or replace function treadle.rerank_tasks(
  p_limit  integer default 1000,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[] := array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.rerank_at <= v_now
      and tasks.status in ('created', 'pending', 'ready', 'retrying', 'blocked')
      and tasks.id <> all (p_skip)
    order by tasks.rerank_at
    limit p_limit
    for update skip locked
  );
begin
  if v_rows = '{}' then
    return;
  end if;
  begin
    return query select moved.id, null from treadle.rerank_rows(v_rows, v_now) as moved (id);
  exception when others then
    -- One of them is bad: each on its own, so that the rest go through.
    for v_at in 1..cardinality(v_rows) loop
      begin
        return query
        select moved.id, null
        from treadle.rerank_rows(v_rows[v_at:v_at], v_now) as moved (id);
      exception when others then
        return query
        select tasks.id, sqlerrm from treadle.tasks where tasks.ctid = v_rows[v_at];
      end;
    end loop;
  end;
end;
$$;

comment on function treadle.rerank_tasks(integer, uuid[]) is
'Give tasks whose deadline has come nearer a new rank; returns their ids.';

revoke all on function treadle.rerank_tasks(integer, uuid[]) from public;
grant execute on function treadle.rerank_tasks(integer, uuid[]) to treadle_worker;
