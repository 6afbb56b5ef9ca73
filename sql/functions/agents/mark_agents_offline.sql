-- mark_agents_offline: set agents offline that have missed three heartbeat intervals.
--
-- Concurrency: skips locked rows; the next heartbeat sets the agent active again.
-- Lock order:  agents.

create or replace function treadle.mark_agents_offline()
returns setof text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := treadle.clock();
begin
  return query
  with gone as materialized (
    select agents.id
    from treadle.agents
    where
      agents.status <> 'offline'
      and agents.heartbeat_at + make_interval(secs => 3 * agents.heartbeat_s) < v_now
    order by agents.id
    for no key update skip locked
  ),

  marked as (
    update treadle.agents
    -- The next heartbeat reactivates an agent that was active, but not one that was draining.
    set status = 'offline', silent = agents.status = 'active'
    where agents.id in (select gone.id from gone)
    returning agents.id
  ),

  told as (
    insert into treadle.events (at, kind, actor, data)
    select v_now, 'agent.timed_out', marked.id, '{}'
    from marked
  )

  select marked.id from marked;
end;
$$;

comment on function treadle.mark_agents_offline() is
'Set agents offline that stopped sending heartbeats; returns their ids.';

grant execute on function treadle.mark_agents_offline() to treadle_worker;
