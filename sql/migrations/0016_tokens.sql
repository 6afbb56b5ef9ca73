-- 0016_tokens: who may use the HTTP interfaces, and for what.

create table treadle.api_tokens (
  id            text not null,
  name          text not null,
  secret_hash   bytea not null,
  scopes        text[] not null,
  queues        text[],
  agent         text,
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
  constraint api_tokens_revoked_check check ((revoked_at is null) = (revoked_by is null))
);

comment on table treadle.api_tokens is
'Tokens for HTTP, with what each may do. A row stays when its token is revoked.';
comment on column treadle.api_tokens.secret_hash is
'SHA-256 of the secret part, which has 256 random bits; the secret itself is nowhere.';
comment on column treadle.api_tokens.queues is 'The queues that it is for; null is all.';

-- A name belongs to one token that is not revoked; also says whether there is any.
create unique index api_tokens_name_key on treadle.api_tokens (name)
where revoked_at is null;
