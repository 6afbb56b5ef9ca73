-- prune_rest: delete what else is left behind: agents that are gone, runs, uses, keys, replies.
--
-- Agents go by their age unless they hold a task or have a budget. Of schedules and triggers only
-- what is told of the past goes: the last run of each stays. Uses of rate limits that are over and
-- concurrency keys that say what is true without them go in any case, and so do old replies.
--
-- Concurrency: rows locked by others are skipped.
-- Lock order:  agents; concurrency_keys; gates; then the history.
-- Raises:      nothing.

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

revoke all on function treadle.prune_rest(integer) from public;
grant execute on function treadle.prune_rest(integer) to treadle_worker;
