-- is_next: predict whether the next claim would take a task.

-- may_admit: return whether the next claim may admit tasks that wait for a slot or a budget.
create or replace function treadle.may_admit()
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  return exists (
    select
    from treadle.admissions
    inner join treadle.tasks on admissions.key = tasks.concurrency_key
    where admissions.kind = 'slot' and tasks.slot = 'waiting'
  )
  or exists (
    select
    from treadle.admissions
    inner join treadle.tasks on tasks.budget_id = admissions.key::bigint
    where admissions.kind = 'budget' and tasks.status = 'pending'
  );
end;
$$;

-- is_fair_claim: return whether a claim over some lanes has to choose between projects.
create or replace function treadle.is_fair_claim(
  p_lanes integer[], p_projects uuid[], p_fair boolean
)
returns boolean
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(p_fair, false)
    and (
      select count(distinct coalesce(lane.project::text, '')) > 1
      from unnest(p_lanes, p_projects) as lane (id, project)
      where exists (
        select from treadle.tasks where tasks.lane_id = lane.id and tasks.status = 'ready'
      )
    )
$$;

-- first_ready_task: return the first ready task of some lanes.
create or replace function treadle.first_ready_task(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_budget  numeric,
  p_skip    uuid[]
)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return (
    select head.id
    from unnest(p_lanes, p_shifts) as lane (id, shift)
    cross join lateral (
      select tasks.id, tasks.rank
      from treadle.tasks
      where
        tasks.lane_id = lane.id
        and tasks.status = 'ready'
        and coalesce(tasks.max_cost_usd - tasks.cost_usd, 0) <= coalesce(p_budget, 'Infinity')
        and tasks.id <> all (p_skip)
      order by tasks.rank, tasks.id
      limit 1
    ) as head
    order by head.rank - lane.shift, head.id
    limit 1
  );
end;
$$;

-- next_probe: return the task that an agent would be given next as the probe of a breaker; see
-- pick_probe.
create or replace function treadle.next_probe(p_agent treadle.agents, p_now timestamptz)
returns uuid
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type  text;
  v_from  record;
  v_found uuid;
begin
  for v_type in
    select breakers.type
    from treadle.breakers
    where
      breakers.probe_at <= p_now
      and (p_agent.task_types is null or breakers.type = any (p_agent.task_types))
      and not exists (
        select from treadle.tasks
        where tasks.id = breakers.probe_task and tasks.claim_token = breakers.probe_token
      )
    order by breakers.type
  loop
    v_from := treadle.probe_lanes(p_agent, p_agent.queues, v_type, p_now);
    v_found := treadle.first_ready_task(
      v_from.lanes, v_from.shifts, treadle.agent_budget_left(p_agent.id, p_now), '{}'
    );
    exit when v_found is not null;
  end loop;
  return v_found;
end;
$$;

-- oversized_gate: return the gate behind which a claim moves a task that needs more than a whole
-- limit.
--
-- See divert_oversized_tasks. Null for a task that fits all limits.
create or replace function treadle.oversized_gate(p_task treadle.tasks)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select format('over:%s:%s', gates.amount, gates.key)
  from treadle.lanes
  inner join treadle.gates on gates.key = any (lanes.gates)
  where
    lanes.id = p_task.lane_id and gates.amount < treadle.gate_need(p_task, gates.unit)
  order by gates.key
  limit 1
$$;

-- is_next_task: return whether the next claim of one task by an agent would take this task.
--
-- It simulates claim_rows: a first task that its budget cannot pay or whose gate is full is skipped
-- and the next one checked, as often as a claim does. If the result is uncertain it returns false:
-- tasks may be admitted before the claim, or projects may take turns.
create or replace function treadle.is_next_task(
  p_task   treadle.tasks,
  p_agent  treadle.agents,
  p_now    timestamptz
)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_spend numeric := treadle.agent_budget_left(p_agent.id, p_now);
  v_probe uuid := treadle.next_probe(p_agent, p_now);
  v_aside uuid[] := '{}';
  v_moved text[] := '{}';
  v_open  record;
  v_task  treadle.tasks;
  v_keys  text[];
  v_large boolean;
  v_gate  text;
begin
  v_open := treadle.open_lanes(
    p_agent, array(select queues.name from treadle.queues where queues.name = any (p_agent.queues)),
    p_agent.task_types, p_now
  );
  if treadle.may_admit() or treadle.is_fair_claim(v_open.lanes, v_open.projects, v_open.fair) then
    return false;
  end if;

  for v_round in 1..10 loop
    select tasks.*
    into v_task
    from treadle.tasks
    where
      tasks.id = coalesce(
        v_probe, treadle.first_ready_task(v_open.lanes, v_open.shifts, v_spend, v_aside)
      );
    exit when not found;
    if exists (
      select from treadle.why_money(v_task, p_now) as money where money.reason = 'budget'
    ) then
      v_aside := v_aside || v_task.id;
      v_probe := null;
      continue;
    end if;

    select array_agg(rates.detail ->> 'gate'), coalesce(bool_or(rates.reason = 'gate_size'), false)
    into v_keys, v_large
    from treadle.lanes
    cross join lateral treadle.why_rates(v_task, lanes, p_now) as rates
    where lanes.id = v_task.lane_id;
    if v_keys is null then
      return v_task.id = p_task.id;
    end if;
    if v_large then
      -- It is skipped; in later rounds only if other tasks of its lane were skipped before.
      v_gate := treadle.oversized_gate(v_task);
      exit when v_round > 1 and not v_task.lane_id || v_gate = any (v_moved) and not exists (
        select
        from treadle.lanes
        inner join treadle.gates on gates.key = v_gate
        where
          lanes.id = v_task.lane_id and treadle.lane_with_gate(lanes, v_gate) is not null
      );
      v_moved := v_moved || (v_task.lane_id || v_gate);
    end if;
    v_aside := v_aside || v_task.id;
    v_probe := null;
    select array_agg(lane.id), array_agg(lane.shift)
    into v_open.lanes, v_open.shifts
    from unnest(v_open.lanes, v_open.shifts) as lane (id, shift)
    inner join treadle.lanes on lane.id = lanes.id
    where v_large or not lanes.gates && v_keys;
  end loop;
  return false;
end;
$$;
