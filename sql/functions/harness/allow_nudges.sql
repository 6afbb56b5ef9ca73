-- allow_nudges: an operator lets the harness nudge an agent at its address, or no longer.
--
-- Returns the address as it is kept. p_private: also where that is an address of this host or of a
-- network of one's own, and the settings of the harness permit it.
--
-- Concurrency: one row.
-- Lock order:  harness_agents, then the history.
-- Raises:      TR001 invalid argument.

create or replace function treadle.allow_nudges(
  p_agent_url  text,
  p_allow      boolean default true,
  p_private    boolean default false,
  p_actor      text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_url text := treadle.agent_url_of(p_agent_url);
begin
  perform treadle.make_harness();
  if p_allow then
    insert into treadle.harness_agents (agent_url, allow_private, created_by)
    values (v_url, coalesce(p_private, false), coalesce(p_actor, session_user))
    on conflict (agent_url) do update set allow_private = excluded.allow_private
    where harness_agents.allow_private <> excluded.allow_private;
  else
    delete from treadle.harness_agents where harness_agents.agent_url = v_url;
  end if;
  if found then
    insert into treadle.events (at, kind, actor, data)
    values (
      treadle.clock(),
      case when p_allow then 'harness.nudges_allowed' else 'harness.nudges_forbidden' end,
      coalesce(p_actor, session_user),
      jsonb_build_object('agent_url', v_url, 'private', p_allow and coalesce(p_private, false))
    );
  end if;
  perform treadle.wake_harness();
  return v_url;
end;
$$;

comment on function treadle.allow_nudges(text, boolean, boolean, text) is
'Let the harness nudge an agent at this address, or no longer; tasks are stored either way.';

grant execute on function treadle.allow_nudges(text, boolean, boolean, text) to treadle_operator;
