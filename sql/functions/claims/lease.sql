-- lease: how long a claim of this agent lasts without another sign of life.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.lease(p_agent treadle.agents, p_started boolean)
returns interval
language sql
immutable
parallel safe
return pg_catalog.make_interval(
  secs => case when p_started then 3 * p_agent.heartbeat_s else p_agent.claim_ttl_s end
);

comment on function treadle.lease(treadle.agents, boolean) is
'Internal: three heartbeats once started, the claim ttl before.';

revoke all on function treadle.lease(treadle.agents, boolean) from public;
