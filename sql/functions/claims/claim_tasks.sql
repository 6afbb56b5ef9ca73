-- claim_tasks: claim the best tasks that an agent may run.
--
-- select id, type, spec from treadle.claim_tasks('me', array['default']);
--
-- A repeated call with the same token returns the same tasks, so a lost response does no harm. The
-- spec has its inputs filled in; problem says why that failed. For models, validators and reports
-- see attempt_requirements.
--
-- Concurrency: skips locked tasks; an agent with a limit is locked and its tasks counted.
-- Lock order:  agents, tasks (skips locked rows), concurrency_keys, breakers, budgets, gates.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR204 unknown agent.

-- claiming_agent: return the agent that claims, with its limit reduced to its free capacity.
--
-- Concurrency: an agent with a limit is locked, so that its tasks can be counted: only its own
-- claims add to them.
-- Lock order:  agents.
-- Raises:      TR001 invalid argument, TR204 unknown agent.
create or replace function treadle.claiming_agent(p_agent text, p_limit integer)
returns treadle.agents
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_agent treadle.agents;
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.raise_error(
      format('limit must be 1 to 10000, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit')
    );
  end if;

  select agents.* into v_agent from treadle.agents where agents.id = p_agent;
  if not found then
    perform treadle.raise_error(
      format('agent %s is not registered', coalesce(quote_literal(left(p_agent, 60)), 'null')),
      jsonb_build_object('agent', left(p_agent, 200)),
      format('Register it first: select treadle.register_agent(%L)', left(p_agent, 60)),
      'TR204'
    );
  end if;

  -- A claim counts as a heartbeat, even for an agent that was set offline.
  if v_agent.silent then
    perform treadle.heartbeat_agent(p_agent);
    select agents.* into v_agent from treadle.agents where agents.id = p_agent;
  end if;

  if v_agent.status <> 'active' then
    v_agent.max_concurrent_tasks := 0;
  elsif v_agent.claims_ahead then
    -- It keeps its limit itself: what it claims now starts later.
    v_agent.max_concurrent_tasks := null;
  elsif v_agent.max_concurrent_tasks is not null then
    select agents.* into v_agent from treadle.agents where agents.id = p_agent for no key update;
    -- It may have more tasks than its limit if the limit was lowered.
    select greatest(0, v_agent.max_concurrent_tasks - count(*))
    into v_agent.max_concurrent_tasks
    from treadle.tasks
    where tasks.agent_id = p_agent and tasks.status in ('claimed', 'running', 'validating');
  end if;
  return v_agent;
end;
$$;

-- write_claims: write a claim on locked tasks.
--
-- Updates by ctid, so that the plan does not depend on table statistics.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks.
create or replace function treadle.write_claims(
  p_rows      tid[],
  p_agent     treadle.agents,
  p_token     uuid,
  p_start     boolean,
  p_budgeted  boolean,
  p_now       timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_until timestamptz := p_now + treadle.lease_duration(p_agent, p_start);
  v_rows  tid[];
begin
  perform treadle.ensure_durable();
  with taken as (
    update treadle.tasks
    set
      status = case when p_start then 'running' else 'claimed' end,
      attempt = tasks.attempt + 1,
      agent_id = p_agent.id,
      claim_token = p_token,
      last_token = null,
      claimed_at = p_now,
      started_at = case when p_start then p_now end,
      heartbeat_at = case when p_start then p_now end,
      lease_until = v_until,
      budgeted = p_budgeted,
      progress = null
    -- A call that is repeated after the reaper ended its claim must not give the task to the old
    -- token.
    where
      tasks.ctid = any (p_rows)
      and tasks.last_token is distinct from p_token
      and (
        (tasks.attempt + tasks.rate_limits = 0 and not tasks.durable)
        or (
          select count(*)
          from treadle.attempts
          where attempts.task_id = tasks.id and attempts.claim_token = p_token
        ) = 0
      )
    returning tasks.ctid
  )

  select array_agg(taken.ctid) into v_rows from taken;
  perform treadle.audit_tasks(v_rows, 'claimed', p_agent.id);
  return coalesce(v_rows, '{}');
end;
$$;

-- claim_rows: lock, check and claim the best tasks that an agent may run now.
--
-- It works in rounds: tasks stopped by a rate limit or a budget leave room, and their gates are
-- closed or the tasks parked, so that the next round finds other tasks. Without gates and budgets
-- there is one round.
--
-- Concurrency: skips locked tasks. Locks on budgets and gates are waited for only in the first
-- round, since later rounds may need them in another order.
-- Lock order:  tasks (skips locked rows), breakers, budgets, gates.
-- Raises:      TR202 unknown queue.
create or replace function treadle.claim_rows(
  p_agent   treadle.agents,
  p_queues  text[],
  p_types   text[],
  p_limit   integer,
  p_start   boolean,
  p_token   uuid,
  p_now     timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit   integer := least(p_limit, p_agent.max_concurrent_tasks);
  v_taken   tid[] := '{}';
  v_open    record;
  v_rows    tid[];
  v_picked  integer;
  v_at      timestamptz := p_now;
begin
  for v_round in 1..10 loop
    exit when cardinality(v_taken) >= v_limit;
    v_open := treadle.open_lanes(p_agent, p_queues, p_types, p_now);
    v_rows := '{}';
    if v_open.probing and v_round = 1 then
      v_rows := treadle.pick_probe(p_agent, p_queues, p_types, p_token, p_now);
      -- Its lane is not among the open lanes, but it may have a limit as well.
      v_open.limited := v_open.limited or v_rows <> '{}';
    end if;
    if v_open.lanes is not null then
      v_rows := v_rows || treadle.pick_tasks(
        v_open.lanes, v_open.shifts, v_limit - cardinality(v_taken) - cardinality(v_rows),
        case when v_open.budgeted then treadle.agent_budget_left(p_agent.id, p_now) end,
        case when v_open.fair then v_open.projects end
      );
    end if;
    v_picked := cardinality(v_rows);
    exit when v_picked = 0;
    if v_open.budgeted then
      v_rows := treadle.filter_affordable(v_rows, p_agent.id, p_now, v_round = 1);
    end if;
    if v_open.limited then
      v_rows := treadle.pass_gates(v_rows, v_round = 1);
      -- Locks on gates may have been waited for: the claim time is taken after everything it
      -- depends on.
      v_at := treadle.clock();
    end if;
    v_rows := treadle.write_claims(v_rows, p_agent, p_token, p_start, v_open.budgeted, v_at);
    if v_open.budgeted then
      perform treadle.reserve_rows(v_rows, p_agent.id, p_now);
    end if;
    if v_open.limited then
      perform treadle.charge_gates(v_rows, v_at);
    end if;
    v_taken := v_taken || v_rows;
    exit when cardinality(v_rows) = v_picked;
  end loop;
  return v_taken;
end;
$$;

-- previous_attempts: return the earlier attempts of a task, for the next one to learn from.
--
-- Each has its error, the messages of validators (feedback), the notes of the attempt (notes), and
-- the comment of the person who retried the task (review).
create or replace function treadle.previous_attempts(p_id uuid)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_agg(
      jsonb_build_object(
        'attempt', past.attempt,
        'agent', past.agent_id,
        'model', past.model,
        'outcome', past.outcome,
        'class', past.class,
        'reason', past.reason,
        'error', left(past.error, 2000),
        'feedback', coalesce(past.feedback, '[]'),
        'notes', (
          select coalesce(jsonb_agg(attempt_notes.note order by attempt_notes.number), '[]')
          from treadle.attempt_notes
          where
            attempt_notes.task_id = p_id and attempt_notes.claim_token = past.claim_token
        ),
        'review', (
          select
            jsonb_build_object(
              'by', dead_letters.reviewer, 'resolution', dead_letters.resolution,
              'note', dead_letters.note, 'at', dead_letters.resolved_at
            )
          from treadle.dead_letters
          where
            dead_letters.task_id = p_id
            and dead_letters.dead_lettered_at = past.ended_at
            and dead_letters.resolution is not null
          limit 1
        ),
        'cost_usd', past.cost_usd,
        'ended_at', past.ended_at,
        'duration_s', extract(
          epoch from past.ended_at - coalesce(past.started_at, past.claimed_at)
        )
      )
      order by past.ended_at, past.attempt
    )
  from (
    select attempts.*
    from treadle.attempts
    where attempts.task_id = p_id and attempts.outcome <> 'suspended'
    order by attempts.ended_at desc, attempts.attempt desc
    limit 20
  ) as past
$$;

-- read_steps: return the saved steps of a task in order, for the attempt that continues it.
create or replace function treadle.read_steps(p_id uuid)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select
    jsonb_agg(
      jsonb_build_object(
        'name', steps.name,
        'seq', steps.seq,
        'kind', steps.kind,
        'output', steps.output,
        'input_hash', steps.input_hash,
        'input', steps.input,
        'saved_at', steps.saved_at,
        'cost_usd', steps.cost_usd
      )
      order by steps.seq
    )
  from treadle.steps
  where steps.task_id = p_id
$$;

create or replace function treadle.claim_tasks(
  p_agent   text,
  p_queues  text[] default '{default}',
  p_types   text[] default null,
  p_limit   integer default 1,
  p_start   boolean default true,
  p_token   uuid default null,
  p_idle    boolean default false
)
returns table (
  id uuid, claim_token uuid, queue text, type text, spec jsonb, attempt smallint,
  max_attempts smallint, timeout_s double precision, priority smallint, lease_until timestamptz,
  created_at timestamptz, deadline_at timestamptz, title text, tags text[], parent_id uuid,
  dag_id uuid, project_id uuid, idempotency_key text, previous jsonb, name text, steps jsonb,
  problem text, max_cost_usd numeric, cost_usd numeric, gates text[], models text[],
  validation jsonb, report boolean
)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_ms    bigint := treadle.rank_ms(v_now);
  v_token uuid := coalesce(p_token, gen_random_uuid());
  v_agent treadle.agents;
  v_types text[] := treadle.types_with_requirements();
  v_rows  tid[] := array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.agent_id = p_agent and tasks.claim_token = p_token and tasks.queue = any (p_queues)
      and tasks.status in ('claimed', 'running', 'validating')
  );
begin
  if v_rows = '{}' then
    v_agent := treadle.claiming_agent(p_agent, p_limit);
    if p_idle then
      perform treadle.mark_idle(p_queues);
    end if;
    -- This locks keys, which come before budgets and gates in the lock order.
    if exists (select from treadle.admissions) then
      perform treadle.admit_waiting_tasks();
    end if;
    v_rows := treadle.claim_rows(v_agent, p_queues, p_types, p_limit, p_start, v_token, v_now);
  end if;
  if v_rows = '{}' then
    return;
  end if;
  return query
  select
    tasks.id, tasks.claim_token, tasks.queue, tasks.type, coalesce(filled.spec, tasks.spec),
    tasks.attempt, tasks.max_attempts, tasks.timeout_s, tasks.priority, tasks.lease_until,
    tasks.created_at, tasks.deadline_at, tasks.title, tasks.tags, tasks.parent_id, tasks.dag_id,
    tasks.project_id, tasks.idempotency_key,
    case when tasks.attempt + tasks.rate_limits > 1 then treadle.previous_attempts(tasks.id) end,
    tasks.name, case when tasks.durable then treadle.read_steps(tasks.id) end, filled.problem,
    tasks.max_cost_usd, tasks.cost_usd, lanes.gates, coalesce(terms.models, '{}'),
    terms.validation, coalesce(terms.report, false)
  from treadle.tasks
  inner join treadle.lanes on tasks.lane_id = lanes.id
  left join lateral (
    -- The offset keeps this subquery separate; otherwise the function would also run for tasks
    -- without inputs.
    select done.* from treadle.resolve_inputs(tasks) as done where tasks.inputs is not null offset 0
  ) as filled on true
  left join lateral (
    select asked.* from treadle.attempt_requirements(tasks) as asked
    where treadle.has_requirements(tasks, v_types) offset 0
  ) as terms on true
  where tasks.ctid = any (v_rows)
  order by tasks.rank - treadle.ageing_offset_at(lanes.ageing, v_ms), tasks.id;
end;
$$;

comment on function treadle.claim_tasks(text, text[], text[], integer, boolean, uuid, boolean) is
'Claim up to p_limit of the best tasks for an agent; with p_start they are running at once.';

grant execute on function
treadle.claim_tasks(text, text[], text[], integer, boolean, uuid, boolean) to treadle_worker;
