-- record_push_heartbeats: record heartbeats of push agents that have responded.
--
-- Written after a third of the interval, or if the agent was offline. An agent that was pruned
-- after a long silence is registered again.
--
-- Concurrency: skips locked rows.
-- Lock order:  agents, by id.

create or replace function treadle.record_push_heartbeats(p_ids text[])
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := treadle.clock();
begin
  perform treadle.register_agent(
    push_agents.agent_id, 'push',
    p_queues => array['push'], p_max_concurrent_tasks => 1, p_url => push_agents.url
  )
  from treadle.push_agents
  where
    push_agents.agent_id = any (p_ids)
    and not exists (select from treadle.agents where agents.id = push_agents.agent_id);

  with heard as materialized (
    select agents.id
    from treadle.agents
    where
      agents.id = any (p_ids)
      and agents.type = 'push'
      and (
        agents.silent or agents.heartbeat_at < v_now - make_interval(secs => agents.heartbeat_s / 3)
      )
    order by agents.id
    for no key update skip locked
  )

  update treadle.agents
  set
    heartbeat_at = v_now,
    status = case when agents.silent then 'active' else agents.status end,
    silent = false
  from heard
  where agents.id = heard.id;
end;
$$;

comment on function treadle.record_push_heartbeats(text[]) is
'Record that push agents have responded to the dispatcher.';

grant execute on function treadle.record_push_heartbeats(text[]) to treadle_worker;
