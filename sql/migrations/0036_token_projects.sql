-- 0036_token_projects: a token belongs to a project by its id, whatever that is called later.

-- The name of a project can be changed, and another project can have it then.
alter table treadle.api_tokens
add column project_id uuid;

-- A token for a project that does not exist keeps its bound, reaches nothing, and is revoked.
update treadle.api_tokens
set
  project_id = coalesce(
    (select projects.id from treadle.projects where projects.name = api_tokens.project),
    '00000000-0000-0000-0000-000000000000'
  )
where api_tokens.project is not null;

update treadle.api_tokens
set revoked_at = clock_timestamp(), revoked_by = session_user
where
  api_tokens.project_id = '00000000-0000-0000-0000-000000000000'
  and api_tokens.revoked_at is null;

alter table treadle.api_tokens
add constraint api_tokens_project_check check ((project is null) = (project_id is null));

comment on column treadle.api_tokens.project is
'What the project was called when the token was made.';
comment on column treadle.api_tokens.project_id is 'The project that it is for; null is all.';

-- Replaced by functions that return the id of the project.
drop function if exists treadle.find_token(text);
drop function if exists treadle.claims_of(uuid[], uuid[]);
