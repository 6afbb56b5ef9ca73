-- claim_harness_task: give an agent its oldest pending task.
--
-- A repeated call with the same token returns the same task and says already, so a lost response
-- does no harm. A task that has been requeued since is not given to its old token again.
--
-- Concurrency: as claim_tasks; of two concurrent claims one gets the task.
-- Lock order:  agents, tasks (skips locked rows).
-- Raises:      TR001 invalid argument, TR101 claim lost.

-- register_harness_agent: record a heartbeat of a harness agent; register the agent if it is new.
--
-- A claim lasts three heartbeat intervals of its agent, so the timeout is stored there. Null leaves
-- it unchanged.
--
-- Concurrency: one row, written only if it changes or is old.
-- Lock order:  agents.
-- Raises:      TR001 invalid argument.
create or replace function treadle.register_harness_agent(p_url text, p_timeout_s double precision)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := treadle.clock();
  v_heartbeat_s double precision := p_timeout_s / 3;
  v_agent treadle.agents;
begin
  if p_timeout_s not between 1 and 86400 then
    perform treadle.raise_error(
      'the claim timeout must be 1 to 86400 seconds', jsonb_build_object('argument', 'timeout_s')
    );
  end if;
  select agents.* into v_agent from treadle.agents where agents.id = p_url;
  if not found then
    insert into treadle.agents (
      id, type, queues, assigned_only, heartbeat_s, heartbeat_at, registered_at
    )
    values (p_url, 'harness', '{harness}', '{harness}', coalesce(v_heartbeat_s, 100), v_now, v_now)
    on conflict (id) do nothing;
  elsif v_agent.heartbeat_s <> v_heartbeat_s or v_agent.silent or v_agent.type <> 'harness'
    or v_agent.assigned_only <> '{harness}'
    or v_agent.heartbeat_at < v_now - make_interval(secs => v_agent.heartbeat_s / 3) then
    update treadle.agents
    set
      type = 'harness',
      assigned_only = '{harness}',
      heartbeat_s = coalesce(v_heartbeat_s, agents.heartbeat_s),
      heartbeat_at = v_now,
      status = case when agents.silent then 'active' else agents.status end,
      silent = false
    where agents.id = p_url;
  end if;
end;
$$;

-- check_token_unused: reject a token whose task was requeued and is again the next task of its
-- agent.
--
-- A task is not given to its old token again. Without an error the agent would conclude that no
-- task is waiting.
--
-- Concurrency: reads only; the caller has claimed nothing.
-- Raises:      TR101 claim lost.
create or replace function treadle.check_token_unused(p_url text, p_token uuid)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_id uuid;
begin
  select head.id into v_id
  from treadle.lanes
  cross join lateral (
    select tasks.id, tasks.last_token
    from treadle.tasks
    where tasks.lane_id = lanes.id and tasks.status = 'ready'
    order by tasks.rank, tasks.id
    limit 1
  ) as head
  where
    lanes.queue = 'harness' and lanes.agent_id = p_url
    and (
      head.last_token = p_token
      or exists (
        select from treadle.attempts
        where attempts.task_id = head.id and attempts.claim_token = p_token
      )
    )
  limit 1;
  if found then
    perform treadle.raise_error(
      format('the claim of task %s with this token has expired', v_id),
      jsonb_build_object('task_id', v_id), 'Claim again with a new token.', 'TR101'
    );
  end if;
end;
$$;

create or replace function treadle.claim_harness_task(
  p_agent_url  text,
  p_token      uuid,
  p_timeout_s  double precision default 300
)
returns table (
  id uuid, agent_url text, payload jsonb, retry_count integer, max_retries integer,
  created_at timestamptz, claim_until timestamptz, already boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_url     text := treadle.normalize_agent_url(p_agent_url);
  v_already boolean := exists (
    select from treadle.tasks
    where
      tasks.agent_id = v_url and tasks.claim_token = p_token
      and tasks.status in ('claimed', 'running', 'validating')
  );
begin
  if p_token is null then
    perform treadle.raise_error(
      'a claim needs a token', jsonb_build_object('argument', 'claim_token')
    );
  end if;
  perform treadle.ensure_harness_queue();
  perform treadle.register_harness_agent(v_url, p_timeout_s);
  return query
  select
    claimed.id, v_url, claimed.spec, claimed.attempt - 1, claimed.max_attempts - 1,
    claimed.created_at, claimed.lease_until, v_already
  from treadle.claim_tasks(v_url, '{harness}', null, 1, true, p_token) as claimed;
  if not found then
    perform treadle.check_token_unused(v_url, p_token);
  end if;
end;
$$;

comment on function treadle.claim_harness_task(text, uuid, double precision) is
'Claim the oldest pending task of a harness agent; returns nothing if there is none.';

grant execute on function treadle.claim_harness_task(text, uuid, double precision) to
treadle_worker;
