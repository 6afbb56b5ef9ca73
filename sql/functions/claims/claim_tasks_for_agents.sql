-- claim_tasks_for_agents: claim the best tasks for each of several agents, in one transaction.
--
-- select agent, id, spec from treadle.claim_tasks_for_agents('{ann,bob}', '{1,2}', '{default}');
--
-- An agent that gets nothing has one row without a task. An agent without a row was not served: it
-- is unknown, another session has locked it, or rate limits, budgets, breakers or admissions are in
-- use. Those locks come last in the lock order, so no further agent could be served after them.
-- Call claim_tasks for such agents, one by one.
--
-- Concurrency: as claim_tasks for each agent; agents with a limit are locked first, skipping locked
-- rows.
-- Lock order:  agents, then as claim_tasks. At the moment when the first rate limit or budget is
-- created, two calls may deadlock; a repeated call succeeds.
-- Raises:      TR001 invalid argument, TR202 unknown queue.

-- claims_are_plain: return whether a claim needs to lock only tasks: no gate, budget, breaker or
-- key.
create or replace function treadle.claims_are_plain()
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return not (
    exists (select from treadle.budgets)
    or exists (select from treadle.gates where gates.unit is not null)
    or exists (select from treadle.breakers where breakers.state <> 'closed')
    or exists (select from treadle.admissions)
  );
end;
$$;

create or replace function treadle.claim_tasks_for_agents(
  p_agents  text[],
  p_limits  integer[],
  p_queues  text[] default '{default}',
  p_types   text[] default null,
  p_start   boolean default true
)
returns table (
  agent text, id uuid, claim_token uuid, queue text, type text, spec jsonb, attempt smallint,
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
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_ask   record;
  v_plain boolean := treadle.claims_are_plain();
  v_held  text[];
begin
  if cardinality(p_agents) is distinct from cardinality(p_limits) then
    perform treadle.raise_error(
      'limits must have one entry for each agent', jsonb_build_object('argument', 'limits')
    );
  end if;
  v_held := array(
    select agents.id
    from treadle.agents
    where agents.id = any (p_agents) and (agents.max_concurrent_tasks is not null or agents.silent)
    for no key update skip locked
  );

  for v_ask in
    select given.agent, given.most
    from unnest(p_agents, p_limits) with ordinality as given (agent, most, at)
    inner join treadle.agents on given.agent = agents.id
    where
      (agents.max_concurrent_tasks is null and not agents.silent)
      or agents.id = any (v_held)
    order by given.at
  loop
    return query
    select v_ask.agent, claimed.*
    from (values (true)) as once
    left join treadle.claim_tasks(v_ask.agent, p_queues, p_types, v_ask.most, p_start) as claimed
      on true;
    exit when not (v_plain and treadle.claims_are_plain());
  end loop;
end;
$$;

comment on function treadle.claim_tasks_for_agents(text[], integer[], text[], text[], boolean) is
'Claim for several agents at once, up to a number of tasks for each; returns what each got.';

grant execute on function
treadle.claim_tasks_for_agents(text[], integer[], text[], text[], boolean) to treadle_worker;
