-- cancel_tasks: end tasks that are not wanted any more.
--
-- Once it returns, no claim starts and no result is accepted. Of each task it says cancelled,
-- already (it was), ended (too late) or unknown.
--
-- Concurrency: rows are locked in id order; the agent of a running task is told at once.
-- Lock order:  tasks, then the history.
-- Raises:      nothing.

create or replace function treadle.cancel_tasks(
  p_ids     uuid[],
  p_reason  text default null,
  p_actor   text default null
)
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_actor text := coalesce(p_actor, session_user);
  v_held  treadle.tasks[];
begin
  perform treadle.keep_durable();
  v_held := array(
    select tasks
    from (select distinct given.id from unnest(p_ids) as given (id)) as wanted
    inner join treadle.tasks on wanted.id = tasks.id
    where tasks.completed_at is null
    order by tasks.id
    for no key update of tasks
  );

  insert into treadle.attempts (
    task_id, claim_token, attempt, agent_id, claimed_at, started_at, ended_at, outcome, reason
  )
  select
    held.id, held.claim_token, held.attempt, held.agent_id, held.claimed_at, held.started_at,
    v_now, 'cancelled', p_reason
  from unnest(v_held) as held
  where held.claim_token is not null;

  if found then
    perform pg_notify('task_cancelled', '');
  end if;

  update treadle.tasks
  set
    status = 'cancelled',
    outcome = 'cancelled',
    completed_at = v_now,
    failure_reason = p_reason,
    last_token = coalesce(tasks.claim_token, tasks.last_token),
    agent_id = null,
    claim_token = null,
    lease_until = null,
    retry_at = null
  from unnest(v_held) as held
  where tasks.id = held.id;

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    v_now, 'task.cancelled', held.id, held.queue, v_actor,
    jsonb_build_object('reason', p_reason, 'was', held.status)
  from unnest(v_held) as held;

  return query
  select given.id, case
    when held.id is not null then 'cancelled'
    when tasks.status = 'cancelled' then 'already'
    when tasks.id is not null then 'ended'
    else 'unknown'
  end
  from unnest(p_ids) with ordinality as given (id, at)
  left join unnest(v_held) as held on given.id = held.id
  left join treadle.tasks on given.id = tasks.id
  order by given.at;
end;
$$;

comment on function treadle.cancel_tasks(uuid[], text, text) is
'Cancel tasks in any state that is not an end; says of each what happened.';

revoke all on function treadle.cancel_tasks(uuid[], text, text) from public;
grant execute on function treadle.cancel_tasks(uuid[], text, text) to
treadle_producer, treadle_operator;
