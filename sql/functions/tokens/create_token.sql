-- create_token: make a token for the HTTP interfaces.
--
-- select treadle.create_token('ci', '{"scopes": ["enqueue"], "queues": ["mail"]}');
--
-- Settings: scopes, queues, agent, project, expires_s. The token stays with the project when that
-- is renamed. It is returned here and never again: only its hash is stored.
--
-- Concurrency: of two that want the same name one is refused.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR208 unknown project.

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
    v_row.project_id := treadle.project_named(v_row.project);
  end if;
  perform treadle.keep_durable();
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
    perform treadle.refuse(
      format('there is a token %s already', quote_literal(p_name)),
      jsonb_build_object('argument', 'name'), 'Take another name, or revoke that one.'
    );
  end if;
  perform treadle.tell_token('created', v_id, p_actor);
  return v_text;
exception
  when data_exception then
    perform treadle.refuse(
      format('token %s cannot be made so: %s', left(quote_nullable(p_name), 60), sqlerrm),
      jsonb_build_object('argument', 'token'), 'treadle token create --help shows examples.'
    );
end;
$$;

comment on function treadle.create_token(text, jsonb, text) is
'Make a token for HTTP and return it; keep it, it is not shown again.';

revoke all on function treadle.create_token(text, jsonb, text) from public;
grant execute on function treadle.create_token(text, jsonb, text) to treadle_operator;
