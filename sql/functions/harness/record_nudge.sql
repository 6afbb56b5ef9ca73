-- record_nudge: record the result of the last nudge of an agent, for display.
--
-- Lock order:  harness_agents.

create or replace function treadle.record_nudge(p_agent_url text, p_error text default null)
returns void
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
  update treadle.harness_agents
  set nudged_at = treadle.clock(), nudge_error = left(p_error, 500)
  where harness_agents.agent_url = p_agent_url
$$;

comment on function treadle.record_nudge(text, text) is
'Record the result of the last nudge of an agent; it has no other effect.';

grant execute on function treadle.record_nudge(text, text) to treadle_worker;
