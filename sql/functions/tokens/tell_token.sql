-- tell_token: record that a token was made or revoked.
--
-- Concurrency: appends.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.tell_token(p_what text, p_id text, p_actor text)
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

comment on function treadle.tell_token(text, text, text) is
'Internal: writes an event about a token, with what it may do and without its hash.';

revoke all on function treadle.tell_token(text, text, text) from public;
