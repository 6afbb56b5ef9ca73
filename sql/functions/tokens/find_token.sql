-- find_token: return the token with this id and the hash of its secret.
--
-- The caller must compare the hash before it uses the other columns. No row means that the token
-- does not exist.

-- status_of_token: live, expired or revoked.
create or replace function treadle.status_of_token(
  p_revoked_at  timestamptz,
  p_expires_at  timestamptz
)
returns text
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
select
  case
    when p_revoked_at is not null then 'revoked'
    when p_expires_at <= treadle.clock() then 'expired'
    else 'live'
  end
$$;

comment on function treadle.status_of_token(timestamptz, timestamptz) is
'Whether a token can be used now: live, expired or revoked.';

create or replace function treadle.find_token(p_id text)
returns table (
  name         text,
  secret_hash  bytea,
  scopes       text[],
  queues       text[],
  agent        text,
  project_id   uuid,
  project      text,
  status       text,
  used         boolean
)
language sql
stable
rows 1
security definer
set search_path = pg_catalog, pg_temp
as $$
select
  api_tokens.name,
  api_tokens.secret_hash,
  api_tokens.scopes,
  api_tokens.queues,
  api_tokens.agent,
  api_tokens.project_id,
  (select projects.name from treadle.projects where projects.id = api_tokens.project_id) as project,
  treadle.status_of_token(api_tokens.revoked_at, api_tokens.expires_at) as status,
  coalesce(api_tokens.last_used_at > treadle.clock() - interval '1 minute', false) as used
from treadle.api_tokens
where api_tokens.id = p_id
$$;

comment on function treadle.find_token(text) is
'A token by its id: the hash of its secret, its rights, and whether it was used recently.';

grant execute on function treadle.status_of_token(timestamptz, timestamptz) to
treadle_observer, treadle_operator;
grant execute on function treadle.find_token(text) to treadle_operator;
