-- allow_nudges: allow or forbid the harness to nudge an agent at its URL.
--
-- Returns the normalized URL. p_private also allows an address of this host or of a private
-- network, if the settings of the harness permit it. With p_only_new an earlier decision stays as
-- it is.
--
-- Lock order:  harness_agents, then the history.
-- Raises:      TR001 invalid argument.

create or replace function treadle.allow_nudges(
  p_agent_url  text,
  p_allow      boolean default true,
  p_private    boolean default false,
  p_actor      text default null,
  p_only_new   boolean default false
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_url text := treadle.normalize_agent_url(p_agent_url);
begin
  perform treadle.ensure_harness_queue();
  insert into treadle.harness_agents (agent_url, allowed, allow_private, created_by)
  values (
    v_url, p_allow, p_allow and coalesce(p_private, false), coalesce(p_actor, session_user)
  )
  on conflict (agent_url) do update
  set
    allowed = excluded.allowed,
    allow_private = excluded.allow_private,
    nudged_at = case when excluded.allowed then harness_agents.nudged_at end,
    nudge_error = case when excluded.allowed then harness_agents.nudge_error end
  where
    not p_only_new
    and (harness_agents.allowed, harness_agents.allow_private)
    <> (excluded.allowed, excluded.allow_private);
  if found then
    insert into treadle.events (at, kind, actor, data)
    values (
      treadle.clock(),
      case when p_allow then 'harness.nudges_allowed' else 'harness.nudges_forbidden' end,
      coalesce(p_actor, session_user),
      jsonb_build_object('agent_url', v_url, 'private', p_allow and coalesce(p_private, false))
    );
  end if;
  perform treadle.notify_harness();
  return v_url;
end;
$$;

comment on function treadle.allow_nudges(text, boolean, boolean, text, boolean) is
'Allow or forbid nudges to an agent at this URL; tasks are stored either way.';

grant execute on function treadle.allow_nudges(text, boolean, boolean, text, boolean) to
treadle_operator;
