-- prune_agents: forget agents that have long been gone.
--
-- One that comes back registers anew. What it did keeps its name.
--
-- Concurrency: agents that are heard of at this moment are locked, and skipped.
-- Lock order:  agents.
-- Raises:      nothing.

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

comment on function treadle.prune_agents(integer) is
'Internal: deletes agents that are gone for longer than they are kept.';

revoke all on function treadle.prune_agents(integer) from public;
