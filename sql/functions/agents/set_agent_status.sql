-- set_agent_status: set an agent active, draining or offline.
--
-- select treadle.set_agent_status('coder-1', 'draining');
--
-- A draining agent claims nothing more, finishes the tasks it has and then stops.
--
-- Lock order:  agents.
-- Raises:      TR001 invalid argument, TR204 unknown agent.

create or replace function treadle.set_agent_status(
  p_id      text,
  p_status  text,
  p_actor   text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_status is null or p_status not in ('active', 'draining', 'offline') then
    perform treadle.raise_error(
      format('the status of an agent cannot be %L', left(p_status, 60)),
      jsonb_build_object('argument', 'status'),
      'Use active, draining or offline.'
    );
  end if;

  update treadle.agents
  set status = p_status, silent = false
  where agents.id = p_id;
  if not found then
    perform treadle.claiming_agent(p_id, 1);
  end if;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(),
    'agent.' || case p_status
      when 'active' then 'activated' when 'draining' then 'drain_started' else 'went_offline'
    end,
    p_id,
    jsonb_build_object('by', coalesce(p_actor, session_user))
  );
  return p_status;
end;
$$;

comment on function treadle.set_agent_status(text, text, text) is
'Set an agent active, draining or offline.';

grant execute on function treadle.set_agent_status(text, text, text) to
treadle_worker, treadle_operator;
