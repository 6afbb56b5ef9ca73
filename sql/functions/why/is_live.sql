-- is_live: whether an agent claims tasks: it is active and gave a sign of life of late.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.is_live(p_agent treadle.agents, p_now timestamptz)
returns boolean
language sql
stable
parallel safe
return (
  p_agent.status = 'active'
  and p_agent.heartbeat_at + pg_catalog.make_interval(secs => 3 * p_agent.heartbeat_s) > p_now
);

comment on function treadle.is_live(treadle.agents, timestamptz) is
'Internal: active, and heard of within three of its heartbeats.';

revoke all on function treadle.is_live(treadle.agents, timestamptz) from public;
grant execute on function treadle.is_live(treadle.agents, timestamptz) to
treadle_observer, treadle_operator;
