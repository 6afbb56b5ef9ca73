-- define_push_agent: make an agent known that tasks are sent to, or change where it is.
--
-- select treadle.define_push_agent('coder-1', 'https://coder-1.example.org');
--
-- It has one task at a time, from the queue `push`. Private addresses need p_allow_private.
--
-- Concurrency: the last definition wins; what was submitted goes on where it was sent.
-- Lock order:  agents, push_agents.
-- Raises:      TR001 invalid argument.

create or replace function treadle.define_push_agent(
  p_id             text,
  p_url            text,
  p_allow_private  boolean default false,
  p_actor          text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_url     text := rtrim(p_url, '/');
  v_problem text := case
    when coalesce(p_id !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$', true) then
      'id has 1 to 100 letters, digits, dots, dashes and underscores'
    when coalesce(octet_length(v_url) > 2000 or v_url ~ '[^!-~]', true) then
      'url has at most 2000 characters, all of them printable ASCII'
    when v_url !~ '^https?://[^/?#@]+(/[^?#]*)?$' then
      'url begins with http:// or https:// and a host; it has no user, password or query'
    when substring(v_url from '^https?://[^/]*:(\d+)(?:/|$)')::numeric > 65535 then
      'url has a port up to 65535'
    when p_allow_private is null then 'allow_private is true or false'
    when exists (
      select from treadle.agents
      where agents.id = p_id and agents.type <> 'push' and agents.status <> 'offline'
    ) then 'id is that of a worker that is not offline'
  end;
begin
  if v_problem is not null then
    perform treadle.refuse(
      format('agent %s: %s', left(quote_nullable(p_id), 60), v_problem),
      jsonb_build_object('argument', split_part(v_problem, ' ', 1)),
      'treadle agents add --help shows examples.'
    );
  end if;
  perform treadle.keep_durable();
  perform treadle.register_agent(
    p_id, 'push', p_queues => array['push'], p_max_concurrent_tasks => 1, p_url => v_url
  );

  insert into treadle.push_agents (agent_id, url, allow_private, created_at, created_by)
  values (p_id, v_url, p_allow_private, treadle.clock(), coalesce(p_actor, session_user))
  on conflict (agent_id) do update
  set url = excluded.url, allow_private = excluded.allow_private;

  insert into treadle.events (at, kind, actor, data)
  values (
    treadle.clock(), 'agent.added', coalesce(p_actor, session_user),
    jsonb_build_object('agent', p_id, 'allow_private', p_allow_private)
  );
  return p_id;
end;
$$;

comment on function treadle.define_push_agent(text, text, boolean, text) is
'Register an agent that the dispatcher sends tasks to, or change its address.';

grant execute on function treadle.define_push_agent(text, text, boolean, text) to treadle_operator;
