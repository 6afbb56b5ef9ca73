-- dispatch_task: claim the next task of queue `push` for the agent that it will be sent to.
--
-- The submission is stored before anything is sent. Its number is one higher than that of the last
-- submission, unless the last one may have reached this agent: then the number is repeated, and the
-- agent sees the same key. An agent that failed to accept or finish its last task gets no task for
-- p_cooldown_s seconds from any dispatcher. Without a dispatcher the claim lasts for p_keep_s, and
-- the reaper does not end it earlier. A repeated call with the same token returns the same task.
--
-- Concurrency: the agent is locked and has one task at a time, whichever dispatcher calls; locked
-- tasks are skipped.
-- Lock order:  as claim_tasks, then dispatches.
-- Raises:      TR001 invalid argument.

-- check_lease: check the holder and the times of a lease.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_lease(
  p_token    uuid,
  p_holder   uuid,
  p_lease_s  double precision,
  p_keep_s   double precision
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if num_nulls(p_token, p_holder) > 0
    or not coalesce(p_lease_s between 0.1 and 3600, false)
    or not coalesce(p_keep_s between p_lease_s and 2592000, false) then
    perform treadle.raise_error(
      'a submission needs a token, a holder, a lease of 0.1 to 3600 seconds and a claim that '
      'lasts longer, up to 2592000 seconds',
      jsonb_build_object('argument', 'lease_s')
    );
  end if;
end;
$$;

-- agent_in_cooldown: return whether an agent failed to accept or finish a task within the last
-- seconds.
--
-- Otherwise an agent that reports idle and accepts nothing would be sent tasks without pause.
--
-- Concurrency: reads only; exact if the caller has locked the agent.
create or replace function treadle.agent_in_cooldown(p_agent text, p_cooldown_s double precision)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (
      select
        last.outcome not in ('completed', 'failed', 'cancelled', 'superseded')
        and last.ended_at > treadle.clock() - make_interval(secs => p_cooldown_s)
      from (
        select dispatches.outcome, dispatches.ended_at
        from treadle.dispatches
        where dispatches.agent_id = p_agent
        order by dispatches.sent_at desc
        limit 1
      ) as last
    ),
    false
  )
$$;

-- dispatch_number: return the number of the next submission of a task.
--
-- A submission that may have reached this agent is repeated with the same number, so that an agent
-- that remembers keys does not execute it again; an agent that answered 5xx may have passed the
-- task on. A later connection failure does not change that. Any other submission gets a new number.
--
-- Concurrency: the caller has claimed the task.
create or replace function treadle.dispatch_number(p_task uuid, p_agent text)
returns integer
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(
      (
        select
          case
            when last.outcome in ('unsure', 'silent', 'error', 'unreachable') then last.number
          end
        from (
          select dispatches.outcome, dispatches.number
          from treadle.dispatches
          where dispatches.task_id = p_task and dispatches.agent_id = p_agent
          order by dispatches.sent_at desc
          limit 1
        ) as last
      ),
      (
        select coalesce(max(dispatches.number), 0) + 1
        from treadle.dispatches
        where dispatches.task_id = p_task
      )
    )
$$;

-- dispatch_target_of: return the data that a dispatcher needs to follow a submission.
--
-- After an error the task is sent like any other, with the same number, because the agent has
-- rejected it.
create or replace function treadle.dispatch_target_of(p_dispatch treadle.dispatches)
returns treadle.dispatch_target
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select row(
    (p_dispatch).task_id,
    (p_dispatch).claim_token,
    (p_dispatch).number,
    (p_dispatch).attempt,
    coalesce(tasks.max_attempts, (p_dispatch).attempt),
    (p_dispatch).agent_id,
    (p_dispatch).agent_url,
    (p_dispatch).allow_private,
    (p_dispatch).agent_task_id,
    coalesce((treadle.resolve_inputs(tasks)).spec, '{}'),
    case
      when tasks.claim_token = (p_dispatch).claim_token then 'ok'
      when tasks.status = 'cancelled' and tasks.last_token = (p_dispatch).claim_token
        then 'cancelled'
      else 'lost'
    end,
    exists (
      select from treadle.dispatches as earlier
      where
        earlier.task_id = (p_dispatch).task_id
        and earlier.agent_id = (p_dispatch).agent_id
        and earlier.number = (p_dispatch).number
        and earlier.claim_token <> (p_dispatch).claim_token
        and earlier.outcome in ('unsure', 'silent')
    )
  )::treadle.dispatch_target
  from (select (p_dispatch).task_id as id) as given
  left join treadle.tasks on given.id = tasks.id
$$;

create or replace function treadle.dispatch_task(
  p_agent    text,
  p_token    uuid,
  p_holder   uuid,
  p_lease_s  double precision default 15,
  p_keep_s   double precision default 86400,
  p_cooldown_s   double precision default 0
)
returns setof treadle.dispatch_target
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_now    timestamptz := treadle.clock();
  v_target treadle.push_agents;
  v_task   record;
begin
  perform treadle.check_lease(p_token, p_holder, p_lease_s, p_keep_s);
  select push_agents.* into v_target
  from treadle.push_agents
  where push_agents.agent_id = p_agent;
  perform from treadle.agents where agents.id = p_agent for no key update;
  if not found
    or v_target.agent_id is null
    or not exists (select from treadle.queues where queues.name = 'push')
    or treadle.agent_in_cooldown(p_agent, p_cooldown_s)
    or exists (
      select from treadle.tasks
      where
        tasks.agent_id = p_agent and tasks.claim_token <> p_token
        and tasks.status in ('claimed', 'running', 'validating')
    ) then
    return;
  end if;

  select claimed.id, claimed.attempt
  into v_task
  from treadle.claim_tasks(p_agent, array['push'], null, 1, false, p_token, true) as claimed;
  if not found then
    return;
  end if;
  update treadle.tasks
  set lease_until = v_now + make_interval(secs => p_keep_s)
  where tasks.id = v_task.id and tasks.claim_token = p_token;

  insert into treadle.dispatches (
    task_id, claim_token, number, attempt, agent_id, agent_url, allow_private, holder,
    lease_until, sent_at, heard_at
  )
  values (
    v_task.id, p_token, treadle.dispatch_number(v_task.id, p_agent), v_task.attempt, p_agent,
    v_target.url, v_target.allow_private, p_holder, v_now + make_interval(secs => p_lease_s),
    v_now, v_now
  )
  on conflict (task_id, claim_token) do nothing;
  return query
  select (treadle.dispatch_target_of(dispatches)).*
  from treadle.dispatches
  where dispatches.task_id = v_task.id and dispatches.claim_token = p_token;
end;
$$;

comment on function treadle.dispatch_task(
  text, uuid, uuid, double precision, double precision, double precision
) is 'Claim the next task for an agent and record that it is being sent.';

grant execute on function treadle.dispatch_task(
  text, uuid, uuid, double precision, double precision, double precision
) to treadle_worker;
