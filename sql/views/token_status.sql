-- token_status: every token, its rights and its last use, without secrets and hashes.

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
'Tokens for HTTP with their state, scopes and last use.';
comment on column treadle.token_status.id is 'Public id of the token.';
comment on column treadle.token_status.name is 'Name of the token.';
comment on column treadle.token_status.status is 'live, expired or revoked.';
comment on column treadle.token_status.scopes is 'What it may do.';
comment on column treadle.token_status.queues is 'Queues that it is restricted to; null for all.';
comment on column treadle.token_status.agent is 'Agent that it is restricted to.';
comment on column treadle.token_status.project is 'Name of the project that it is restricted to.';
comment on column treadle.token_status.project_id is 'Id of its project.';
comment on column treadle.token_status.expires_at is 'When it expires; null for never.';
comment on column treadle.token_status.last_used_at is 'When it was used last, to the minute.';
comment on column treadle.token_status.created_at is 'When it was created.';
comment on column treadle.token_status.created_by is 'Actor that created it.';
comment on column treadle.token_status.revoked_at is 'When it was revoked.';
comment on column treadle.token_status.revoked_by is 'Actor that revoked it.';

grant select on treadle.token_status to treadle_observer, treadle_operator;
