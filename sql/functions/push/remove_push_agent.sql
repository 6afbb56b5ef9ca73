-- remove_push_agent: stop sending tasks to an agent.
--
-- The task that it works on is followed until it ends.
--
-- Concurrency: a submission in progress still arrives.
-- Lock order:  agents, push_agents.
-- Raises:      TR204 unknown agent.

create or replace function treadle.remove_push_agent(p_id text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update treadle.agents
  set status = 'offline', silent = false
  where agents.id = p_id and agents.type = 'push';
  delete from treadle.push_agents where push_agents.agent_id = p_id;
  if not found then
    perform treadle.raise_error(
      format('there is no push agent %s', left(quote_nullable(p_id), 100)),
      jsonb_build_object('agent', left(p_id, 200)),
      'To list them: treadle agents list --push',
      'TR204'
    );
  end if;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'agent.removed', coalesce(p_actor, session_user),
    jsonb_build_object('agent', p_id)
  );
end;
$$;

comment on function treadle.remove_push_agent(text, text) is
'Remove a push agent; the task that it works on is followed until it ends.';

grant execute on function treadle.remove_push_agent(text, text) to treadle_operator;
