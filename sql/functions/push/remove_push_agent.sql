-- remove_push_agent: send nothing more to an agent.
--
-- What it works on is followed to its end.
--
-- Concurrency: a submission that is being made at this moment still arrives.
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
    perform treadle.refuse(
      format('there is no agent %s that tasks are sent to', left(quote_nullable(p_id), 100)),
      jsonb_build_object('agent', left(p_id, 200)), 'List them: treadle agents push', 'TR204'
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
'Forget an agent that tasks are sent to; what it has is followed to its end.';

grant execute on function treadle.remove_push_agent(text, text) to treadle_operator;
