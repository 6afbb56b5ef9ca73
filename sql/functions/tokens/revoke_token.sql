-- revoke_token: revoke a token by its id or name; revoking an id again is not an error.
--
-- If the whole token is passed, its id is taken from it, and the secret is not repeated in errors.
--
-- Concurrency: HTTP servers reject the token within five seconds.
-- Lock order:  api_tokens.
-- Raises:      TR217 unknown token.

create or replace function treadle.revoke_token(p_token text, p_actor text default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key text := coalesce(substring(p_token from '^trd_([0-9a-f]{12})_'), p_token);
  v_row treadle.api_tokens;
begin
  -- An id takes precedence over a name that looks like one.
  select api_tokens.* into v_row
  from treadle.api_tokens
  where api_tokens.id = v_key or (api_tokens.name = v_key and api_tokens.revoked_at is null)
  order by api_tokens.id = v_key desc
  limit 1
  for no key update;
  if not found then
    perform treadle.raise_error(
      format('there is no token %s', left(quote_nullable(v_key), 100)),
      jsonb_build_object('token', left(v_key, 100)), 'To list tokens: treadle tokens list', 'TR217'
    );
  elsif v_row.revoked_at is null then
    perform treadle.ensure_durable();
    update treadle.api_tokens
    set revoked_at = treadle.clock(), revoked_by = coalesce(left(p_actor, 200), session_user)
    where api_tokens.id = v_row.id;
    perform treadle.emit_token_event('revoked', v_row.id, p_actor);
  end if;
  return v_row.id;
end;
$$;

comment on function treadle.revoke_token(text, text) is
'Revoke a token by id or name and return its id; this cannot be undone.';

grant execute on function treadle.revoke_token(text, text) to treadle_operator;
