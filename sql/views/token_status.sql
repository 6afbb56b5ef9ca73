-- token_status: every token, what it may do and when it was used. No secrets, no hashes.

create view treadle.token_status as
select
  api_tokens.id,
  api_tokens.name,
  treadle.status_of_token(api_tokens.revoked_at, api_tokens.expires_at) as status,
  api_tokens.scopes,
  api_tokens.queues,
  api_tokens.agent,
  (select projects.name from treadle.projects where projects.id = api_tokens.project_id) as project,
  api_tokens.project_id,
  api_tokens.expires_at,
  api_tokens.last_used_at,
  api_tokens.created_at,
  api_tokens.created_by,
  api_tokens.revoked_at,
  api_tokens.revoked_by
from treadle.api_tokens;

comment on view treadle.token_status is
'Tokens for HTTP: live, expired or revoked, with their scopes and last use (to the minute).';

grant select on treadle.token_status to treadle_observer, treadle_operator;
