-- prune_rest: delete what else is left behind: agents that are gone, runs, uses, keys, replies.
--
-- Agents go by their age unless they hold a task or have a budget. Of schedules and triggers only
-- what is told of the past goes: the last run of each stays. Uses of rate limits that are over and
-- concurrency keys that say what is true without them go in any case, and so do old replies.
--
-- Concurrency: rows locked by others are skipped.
-- Lock order:  agents; concurrency_keys; gates; then the history.

-- old_before: what is older than this need not be kept; null where it is kept for ever.
--
-- Concurrency: reads.
create or replace function treadle.old_before(p_kind text)
returns timestamptz
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select treadle.clock() - make_interval(secs => retention.keep_s)
  from treadle.retention
  where retention.kind = p_kind
$$;

-- prune_agents: forget agents that have long been gone.
--
-- One that comes back registers anew. What it did keeps its name.
--
-- Concurrency: agents that are heard of at this moment are locked, and skipped.
-- Lock order:  agents.
create or replace function treadle.prune_agents(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before timestamptz := treadle.old_before('agents');
  v_ids    text[];
  v_gone   integer;
begin
  v_ids := array(
    select agents.id
    from treadle.agents
    where agents.heartbeat_at <= v_before and (agents.status = 'offline' or agents.silent)
    limit p_limit
    for update skip locked
  );
  delete from treadle.agents
  where
    agents.id = any (v_ids)
    and not exists (
      select from treadle.tasks
      where
        tasks.agent_id = agents.id and tasks.status in ('claimed', 'running', 'validating')
    )
    and not exists (
      select from treadle.budgets
      where budgets.scope = 'agent' and budgets.scope_key = agents.id
    );
  get diagnostics v_gone = row_count;
  return v_gone;
end;
$$;

-- prune_runs: forget what schedules and triggers did long ago.
--
-- What bounds them stays: the last run of a schedule, and what a trigger made while that is there.
--
-- Concurrency: rows are only ever added; nothing is waited for.
-- Lock order:  the history.
create or replace function treadle.prune_runs(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before timestamptz := treadle.old_before('runs');
  v_runs   integer;
  v_fires  integer;
begin
  if v_before is null then
    return 0;
  end if;
  delete from treadle.schedule_runs
  where schedule_runs.ctid = any (
    array(
      select runs.ctid
      from treadle.schedule_runs as runs
      where
        runs.fired_at <= v_before
        and exists (
          select from treadle.schedule_runs as later
          where later.schedule_id = runs.schedule_id and later.id > runs.id
        )
        and not exists (
          select from treadle.tasks
          where tasks.id = runs.task_id or tasks.dag_id = runs.dag_id
        )
      order by runs.id
      limit p_limit
      for update skip locked
    )
  );
  get diagnostics v_runs = row_count;

  delete from treadle.trigger_fires
  where trigger_fires.ctid = any (
    array(
      select fires.ctid
      from treadle.trigger_fires as fires
      where
        fires.fired_at <= v_before
        and not exists (select from treadle.events where events.id = fires.event_id)
        and not exists (
          select from treadle.tasks
          where tasks.id = fires.task_id or tasks.dag_id = fires.dag_id
        )
      limit p_limit
      for update skip locked
    )
  );
  get diagnostics v_fires = row_count;
  return v_runs + v_fires;
end;
$$;

-- prune_keys: forget concurrency keys that no task has and that say nothing of their own.
--
-- A key that is not stored has one slot: so only those with one go. No task that could still run
-- may have it.
--
-- Concurrency: keys that somebody counts are locked, and skipped; a key that is gone is stored
--              again by who counts next.
-- Lock order:  concurrency_keys.
create or replace function treadle.prune_keys(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_keys text[] := array(
    select keys.key
    from treadle.concurrency_keys as keys
    where
      keys.max = 1
      and not exists (
        select from treadle.tasks
        where tasks.concurrency_key = keys.key and tasks.slot is not null
      )
    order by keys.key
    limit p_limit
    for update skip locked
  );
  v_gone integer;
begin
  -- A task may have come since: looked at again, now that the keys are held.
  delete from treadle.concurrency_keys
  where
    concurrency_keys.key = any (v_keys)
    and not exists (
      select from treadle.tasks
      where tasks.concurrency_key = concurrency_keys.key and tasks.slot is not null
    )
    and not exists (
      select from treadle.admissions
      where admissions.kind = 'slot' and admissions.key = concurrency_keys.key
    );
  get diagnostics v_gone = row_count;
  return v_gone;
end;
$$;

-- prune_uses: forget what passed gates longer than a period ago, or gates without a rate.
--
-- Concurrency: gates that somebody counts at are locked, and skipped.
-- Lock order:  gates, gate_uses.
create or replace function treadle.prune_uses(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now  timestamptz := treadle.clock();
  v_held text[] := array(
    select gates.key
    from treadle.gates
    where exists (
      select from treadle.gate_uses
      where
        gate_uses.key = gates.key
        and coalesce(gate_uses.slot < treadle.gate_slot(v_now, gates.period_s) - 60, true)
    )
    order by gates.key
    limit p_limit
    for no key update skip locked
  );
  v_gone integer;
begin
  delete from treadle.gate_uses
  using treadle.gates
  where
    gates.key = any (v_held) and gate_uses.key = gates.key
    and coalesce(gate_uses.slot < treadle.gate_slot(v_now, gates.period_s) - 60, true);
  get diagnostics v_gone = row_count;
  return v_gone;
end;
$$;

create or replace function treadle.prune_rest(p_limit integer default 1000)
returns table (kind text, pruned integer)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query values
  ('agents', treadle.prune_agents(p_limit)),
  ('runs', treadle.prune_runs(p_limit)),
  ('concurrency_keys', treadle.prune_keys(p_limit)),
  ('gate_uses', treadle.prune_uses(p_limit)),
  ('replies', treadle.prune_replies(p_limit));
end;
$$;

comment on function treadle.prune_rest(integer) is
'Delete old agents and runs, and what is left of gates and keys; says how many of each.';

grant execute on function treadle.prune_rest(integer) to treadle_worker;
