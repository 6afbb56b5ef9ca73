-- create_token: create a token for the HTTP interfaces.
--
-- select treadle.create_token('ci', '{"scopes": ["enqueue"], "queues": ["mail"]}');
--
-- Settings: scopes, queues, agent, project, expires_s. If the project is renamed, the token stays
-- with it. The token is returned only once: only its hash is stored.
--
-- Concurrency: of two calls with the same name one is rejected.
-- Raises:      TR001 invalid argument, TR208 unknown project.

-- new_token: generate the text of a new token: trd_, its id, _, its secret, a checksum.
--
-- The id is public, and the secret has 256 random bits. The checksum lets secret scanners recognize
-- a token, and lets the server reject mistyped tokens without a lookup.
create or replace function treadle.new_token()
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
select
  body.text || left(
    translate(encode(sha256(convert_to(body.text, 'UTF8')), 'base64'), '+/', '-_'), 6
  )
from (
  select
    'trd_'
    || left(replace(gen_random_uuid()::text, '-', ''), 12)
    || '_'
    -- The 32 random bytes of a webhook secret, in the URL-safe alphabet.
    || translate(substr(treadle.new_secret(), 7), '+/=', '-_') as text
) as body
$$;

-- check_token: check the settings of a token.
--
-- Raises:      TR001 invalid argument.
create or replace function treadle.check_token(p_token treadle.api_tokens)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  v_problem := case
    when coalesce((p_token).name !~ '^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$', true) then
      'name must be 1 to 100 letters, digits, dots, dashes, underscores and @'
    -- local is the name of callers on this host while there are no tokens.
    when (p_token).name = 'local' then 'the name local is reserved'
    when
      coalesce(cardinality((p_token).scopes), 0) = 0
      or not coalesce(
        (p_token).scopes <@ array['read', 'enqueue', 'work', 'operate', 'admin'], false
      ) then 'scopes must be some of read, enqueue, work, operate, admin'
    when
      cardinality((p_token).queues) not between 1 and 100
      or exists (
        select
        from unnest((p_token).queues) as queues (name)
        where coalesce(octet_length(queues.name) not between 1 and 200, true)
      ) then 'queues must be 1 to 100 names; omit queues to allow all'
    when octet_length((p_token).agent) not between 1 and 200 then 'agent must be 1 to 200 bytes'
    when octet_length((p_token).project) not between 1 and 200 then 'project must be 1 to 200 bytes'
    when (p_token).expires_at <= treadle.clock() then 'expires_s must be more than 0 seconds'
    when (p_token).expires_at > treadle.clock() + interval '100 years' then
      'expires_s must be less than 100 years'
  end;
  if v_problem is not null then
    perform treadle.raise_error(
      format('token %s: %s', left(quote_nullable((p_token).name), 60), v_problem),
      jsonb_build_object('argument', split_part(v_problem, ' ', 1)),
      'See treadle tokens create --help for examples.'
    );
  end if;
end;
$$;

-- emit_token_event: write an event about a token that was created or revoked.
create or replace function treadle.emit_token_event(p_what text, p_id text, p_actor text)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
insert into treadle.events (at, kind, actor, data)
select
  treadle.clock(),
  'token.' || p_what,
  coalesce(left(p_actor, 200), session_user),
  jsonb_strip_nulls(
    jsonb_build_object(
      'token', api_tokens.name,
      'id', api_tokens.id,
      'scopes', api_tokens.scopes,
      'queues', api_tokens.queues,
      'agent', api_tokens.agent,
      'project', api_tokens.project,
      'project_id', api_tokens.project_id,
      'expires_at', api_tokens.expires_at
    )
  )
from treadle.api_tokens
where api_tokens.id = p_id
$$;

create or replace function treadle.create_token(
  p_name      text,
  p_settings  jsonb,
  p_actor     text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row    treadle.api_tokens;
  v_text   text := treadle.new_token();
  v_id     text := split_part(v_text, '_', 2);
  v_secret text := substr(v_text, 18, 43);
begin
  perform treadle.check_settings(
    p_settings, array['scopes', 'queues', 'agent', 'project', 'expires_s']
  );
  v_row := jsonb_populate_record(
    null::treadle.api_tokens,
    (p_settings - 'expires_s') || jsonb_build_object('id', v_id, 'name', p_name)
  );
  v_row.expires_at := treadle.clock()
  + make_interval(secs => (p_settings ->> 'expires_s')::double precision);
  perform treadle.check_token(v_row);
  if v_row.project is not null then
    v_row.project_id := treadle.find_project_by_name(v_row.project);
  end if;
  perform treadle.ensure_durable();
  insert into treadle.api_tokens (
    id, name, secret_hash, scopes, queues, agent, project, project_id, expires_at, created_at,
    created_by
  )
  values (
    v_id, p_name, sha256(convert_to(v_secret, 'UTF8')), v_row.scopes, v_row.queues, v_row.agent,
    v_row.project, v_row.project_id, v_row.expires_at, treadle.clock(),
    coalesce(left(p_actor, 200), session_user)
  )
  on conflict (name) where revoked_at is null do nothing;
  if not found then
    perform treadle.raise_error(
      format('there is already a token %s', quote_literal(p_name)),
      jsonb_build_object('argument', 'name'), 'Use another name, or revoke that token.'
    );
  end if;
  perform treadle.emit_token_event('created', v_id, p_actor);
  return v_text;
exception
  when data_exception then
    perform treadle.raise_error(
      format('token %s cannot be created: %s', left(quote_nullable(p_name), 60), sqlerrm),
      jsonb_build_object('argument', 'token'), 'See treadle tokens create --help for examples.'
    );
end;
$$;

comment on function treadle.create_token(text, jsonb, text) is
'Create a token for HTTP and return it; store it, because it is not shown again.';

grant execute on function treadle.create_token(text, jsonb, text) to treadle_operator;
