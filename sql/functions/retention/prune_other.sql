-- prune_other: delete old agents, runs, gate uses, concurrency keys and stored responses.
--
-- Agents are deleted by age unless they have a task or a budget. Of schedules and triggers only the
-- history is deleted; the last run of each stays. Gate uses of past periods, concurrency keys with
-- default settings and old responses are always deleted.
--
-- Concurrency: skips locked rows.
-- Lock order:  agents; concurrency_keys; gates; then the history.

-- retention_cutoff: return the time before which rows need not be kept; null if they are kept
-- forever.
create or replace function treadle.retention_cutoff(p_kind text)
returns timestamptz
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  select treadle.clock() - make_interval(secs => retention.keep_s)
  from treadle.retention
  where retention.kind = p_kind
$$;

-- prune_agents: delete agents that have sent no heartbeat for a long time.
--
-- An agent that returns registers again. Its history keeps its name.
--
-- Concurrency: agents that send a heartbeat now are locked, and are skipped.
-- Lock order:  agents.
create or replace function treadle.prune_agents(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before timestamptz := treadle.retention_cutoff('agents');
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

-- prune_runs: delete old runs of schedules and fires of triggers.
--
-- What their limits depend on stays: the last run of a schedule, and fires of a trigger whose tasks
-- still exist.
--
-- Concurrency: rows are only inserted elsewhere; no lock is waited for.
-- Lock order:  the history.
create or replace function treadle.prune_runs(p_limit integer)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before timestamptz := treadle.retention_cutoff('runs');
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

-- prune_keys: delete concurrency keys that no task uses and that have default settings.
--
-- A key that is not stored has one slot, so only keys with one slot are deleted. No task that could
-- still run may have the key.
--
-- Concurrency: keys in use are locked, and are skipped; a deleted key is inserted again when it is
-- needed.
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
  -- A task may have been added since: check again now that the keys are locked.
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

-- prune_uses: delete gate uses from more than a period ago, or of gates without a rate limit.
--
-- Concurrency: gates in use are locked, and are skipped.
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

create or replace function treadle.prune_other(p_limit integer default 1000)
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

comment on function treadle.prune_other(integer) is
'Delete old agents and runs, gate uses, keys and responses; returns how many of each.';

grant execute on function treadle.prune_other(integer) to treadle_worker;
