-- claim_tasks: give an agent the best tasks that it may have.
--
-- select id, type, spec from treadle.claim_tasks('me', array['default']);
--
-- Repeating a call with its token returns the same tasks: an answer that was lost is no loss.
-- The spec has its inputs filled in; one that cannot be is told in problem. See terms_of, too.
--
-- Concurrency: tasks are taken with skip locked; an agent with a limit is locked and counted.
-- Lock order:  agents, tasks (never waits for a task), concurrency_keys, breakers, budgets, gates.
-- Raises:      TR001 invalid argument, TR202 unknown queue, TR204 unknown agent.

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
  v_types text[] := treadle.demanding_types();
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
    -- That holds keys, which come before budgets and gates in the order of locks.
    if exists (select from treadle.admissions) then
      perform treadle.admit_tasks();
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
    -- Kept apart by the offset: else the function would be called for tasks without inputs too.
    select done.* from treadle.resolve_inputs(tasks) as done where tasks.inputs is not null offset 0
  ) as filled on true
  left join lateral (
    select asked.* from treadle.terms_of(tasks) as asked
    where treadle.has_terms(tasks, v_types) offset 0
  ) as terms on true
  where tasks.ctid = any (v_rows)
  order by tasks.rank - treadle.shift_at(lanes.ageing, v_ms), tasks.id;
end;
$$;

comment on function treadle.claim_tasks(text, text[], text[], integer, boolean, uuid, boolean) is
'Claim up to p_limit of the best tasks for an agent; with p_start they are running at once.';

revoke all on function treadle.claim_tasks(text, text[], text[], integer, boolean, uuid, boolean)
from public;
grant execute on function
treadle.claim_tasks(text, text[], text[], integer, boolean, uuid, boolean) to treadle_worker;
