-- requeue_harness_tasks: requeue harness tasks with an expired claim, or fail them after their last
-- retry.
--
-- It does what the reaper does, for harness tasks only, so the harness needs no reaper. A row that
-- cannot be moved is reported in problem; pass its id in p_skip to leave it out. For the reason why
-- ids are collected first, see lock_expired_claims.
--
-- Concurrency: skips locked rows; the condition is checked again on the locked row.
-- Lock order:  tasks, then the history.

create or replace function treadle.requeue_harness_tasks(
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
      and treadle.claim_expiry_reason(tasks, v_now) is not null
      and tasks.id <> all (p_skip)
  );
begin
  perform treadle.ensure_durable();
  for v_task in
    select
      tasks.ctid as place, tasks.id, tasks.assigned_agent,
      treadle.claim_expiry_reason(tasks, v_now) as reason
    from (
      select given.id from unnest(v_ids) as given (id) order by given.id limit p_limit
    ) as stale
    inner join treadle.tasks on stale.id = tasks.id
    where treadle.claim_expiry_reason(tasks, v_now) is not null
    for update of tasks skip locked
  loop
    begin
      return query
      select moved.id, v_task.assigned_agent, v_task.reason, moved.status, null
      from treadle.reap_rows(array[v_task.place], array[v_task.reason]) as moved;
    exception
      when lock_not_available then null; -- the next call takes it
      when others then
        return query
        select v_task.id, v_task.assigned_agent, v_task.reason, null, sqlerrm;
    end;
  end loop;
end;
$$;

comment on function treadle.requeue_harness_tasks(integer, uuid[]) is
'Requeue harness tasks of agents that stopped sending heartbeats; returns what became of each.';

grant execute on function treadle.requeue_harness_tasks(integer, uuid[]) to treadle_worker;
