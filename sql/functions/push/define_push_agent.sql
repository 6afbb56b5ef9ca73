-- define_push_agent: register an agent that tasks are sent to, or change its URL.
--
-- select treadle.define_push_agent('coder-1', 'https://coder-1.example.org');
--
-- It has one task at a time, from queue `push`. Private addresses need p_allow_private. Returns
-- whether the agent is new.
--
-- Concurrency: the last definition wins; open submissions continue at the old URL.
-- Lock order:  agents, push_agents.
-- Raises:      TR001 invalid argument.

create or replace function treadle.define_push_agent(
  p_id             text,
  p_url            text,
  p_allow_private  boolean default false,
  p_actor          text default null
)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_url     text := rtrim(p_url, '/');
  v_problem text := case
    when coalesce(p_id !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$', true) then
      'id must be 1 to 100 letters, digits, dots, dashes and underscores'
    when coalesce(octet_length(v_url) > 2000 or v_url ~ '[^!-~]', true) then
      'url must be at most 2000 printable ASCII characters'
    when v_url !~ '^https?://[^/?#@]+(/[^?#]*)?$' then
      'url must be http:// or https:// with a host, without user, password or query'
    when substring(v_url from '^https?://[^/]*:(\d+)(?:/|$)')::numeric > 65535 then
      'the port of the url must be at most 65535'
    when p_allow_private is null then 'allow_private must be true or false'
    when exists (
      select from treadle.agents
      where agents.id = p_id and agents.type <> 'push' and agents.status <> 'offline'
    ) then 'the id belongs to a worker that is not offline'
  end;
  v_made    boolean;
begin
  if v_problem is not null then
    perform treadle.raise_error(
      format('agent %s: %s', left(quote_nullable(p_id), 60), v_problem),
      jsonb_build_object('argument', split_part(v_problem, ' ', 1)),
      'See treadle agents create --help for examples.'
    );
  end if;
  perform treadle.ensure_durable();
  perform treadle.register_agent(
    p_id, 'push', p_queues => array['push'], p_max_concurrent_tasks => 1, p_url => v_url
  );

  insert into treadle.push_agents (agent_id, url, allow_private, created_at, created_by)
  values (p_id, v_url, p_allow_private, treadle.clock(), coalesce(p_actor, session_user))
  on conflict (agent_id) do update
  set url = excluded.url, allow_private = excluded.allow_private
  -- Only a row that this statement inserts has no xmax.
  returning push_agents.xmax = 0 into v_made;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'agent.added', coalesce(p_actor, session_user),
    jsonb_build_object('agent', p_id, 'allow_private', p_allow_private)
  );
  return v_made;
end;
$$;

comment on function treadle.define_push_agent(text, text, boolean, text) is
'Register an agent that the dispatcher sends tasks to, or change its URL.';

grant execute on function treadle.define_push_agent(text, text, boolean, text) to treadle_operator;
