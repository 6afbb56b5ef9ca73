-- 0011_tokens_and_replies: tokens of the HTTP interfaces, and replies to requests that may repeat.

create table treadle.api_tokens (
  id            text not null,
  name          text not null,
  secret_hash   bytea not null,
  scopes        text[] not null,
  queues        text[],
  agent         text,
  project_id    uuid,
  project       text,
  expires_at    timestamptz,
  last_used_at  timestamptz,
  created_at    timestamptz not null default clock_timestamp(),
  created_by    text not null default session_user,
  revoked_at    timestamptz,
  revoked_by    text,
  constraint api_tokens_pkey primary key (id),
  constraint api_tokens_id_check check (id ~ '^[0-9a-f]{12}$'),
  constraint api_tokens_name_check check (octet_length(name) between 1 and 100),
  constraint api_tokens_secret_hash_check check (octet_length(secret_hash) = 32),
  constraint api_tokens_scopes_check check (
    cardinality(scopes) > 0
    and scopes <@ array['read', 'enqueue', 'work', 'operate', 'admin']
  ),
  constraint api_tokens_queues_check check (cardinality(queues) > 0),
  constraint api_tokens_project_check check ((project is null) = (project_id is null)),
  constraint api_tokens_revoked_check check ((revoked_at is null) = (revoked_by is null))
);

comment on table treadle.api_tokens is
'HTTP tokens and their permissions. The row stays when the token is revoked.';
comment on column treadle.api_tokens.secret_hash is
'SHA-256 of the secret part, which has 256 random bits; the secret itself is not stored.';
comment on column treadle.api_tokens.queues is 'Queues that it is restricted to; null: all.';
comment on column treadle.api_tokens.project_id is 'Project that it is restricted to; null: all.';
-- A project can be renamed, and another one can take its old name: the id decides.
comment on column treadle.api_tokens.project is 'Name of the project when the token was created.';

-- Only one token that is not revoked has a given name. has_tokens also uses this index.
create unique index api_tokens_name_key on treadle.api_tokens (name)
where revoked_at is null;

-- A request that is being processed has a row without status and body, which serves as its lock.
create table treadle.replies (
  principal   text not null,
  key         text not null,
  route       text not null,
  hash        text not null,
  status      integer,
  headers     jsonb not null default '{}',
  body        bytea,
  created_at  timestamptz not null default clock_timestamp(),
  constraint replies_pkey primary key (principal, key),
  constraint replies_principal_check check (char_length(principal) between 1 and 200),
  constraint replies_key_check check (char_length(key) between 1 and 200),
  constraint replies_status_check check (status between 100 and 599),
  constraint replies_answer_check check ((status is null) = (body is null))
);

comment on table treadle.replies is
'Responses to requests with an Idempotency-Key, stored with their effects; kept for 24 hours.';
comment on column treadle.replies.principal is 'The caller: each one has keys of its own.';
comment on column treadle.replies.hash is 'Hash of the method, the path and the body.';
comment on column treadle.replies.status is 'HTTP status; null while the response is not stored.';

create index replies_created_idx on treadle.replies (created_at);
