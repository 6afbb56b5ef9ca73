-- requeue_harness: tasks whose claim ran out are pending again, or failed after their last retry.
--
-- The same as the reaper does, for the tasks of the harness alone: it needs no reaper beside it.
-- A row that cannot be moved is told in problem, and left out when its id is in p_skip. Why the ids
-- come first: see stale_claims.
--
-- Concurrency: rows locked by others are skipped; the test is repeated on the locked row.
-- Lock order:  tasks, then the history.

create or replace function treadle.requeue_harness(
  p_limit  integer default 100,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, agent_url text, reason text, status text, problem text)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set lock_timeout = '200ms'
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_task record;
  v_ids  uuid[] := array(
    select tasks.id
    from treadle.tasks
    where
      tasks.status in ('claimed', 'running', 'validating')
      and tasks.queue = 'harness' and tasks.assigned_agent is not null
      and treadle.stale_reason(tasks, v_now) is not null
      and tasks.id <> all (p_skip)
  );
begin
  perform treadle.keep_durable();
  for v_task in
    select
      tasks.ctid as place, tasks.id, tasks.assigned_agent,
      treadle.stale_reason(tasks, v_now) as reason
    from (
      select given.id from unnest(v_ids) as given (id) order by given.id limit p_limit
    ) as stale
    inner join treadle.tasks on stale.id = tasks.id
    where treadle.stale_reason(tasks, v_now) is not null
    for update of tasks skip locked
  loop
    begin
      return query
      select moved.id, v_task.assigned_agent, v_task.reason, moved.status, null
      from treadle.reap_rows(array[v_task.place], array[v_task.reason]) as moved;
    exception
      when lock_not_available then null; -- the next look takes it
      when others then
        return query
        select v_task.id, v_task.assigned_agent, v_task.reason, null, sqlerrm;
    end;
  end loop;
end;
$$;

comment on function treadle.requeue_harness(integer, uuid[]) is
'Take tasks of the harness back from agents that are silent; says what becomes of each.';

grant execute on function treadle.requeue_harness(integer, uuid[]) to treadle_worker;
