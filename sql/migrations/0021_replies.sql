-- 0021_replies: what the server answered to requests with an Idempotency-Key.

create table treadle.replies (
  principal   text not null,
  key         text not null,
  route       text not null,
  hash        text not null,
  status      integer not null,
  headers     jsonb not null default '{}',
  body        bytea not null,
  created_at  timestamptz not null default clock_timestamp(),
  constraint replies_pkey primary key (principal, key),
  constraint replies_principal_check check (octet_length(principal) between 1 and 200),
  constraint replies_key_check check (octet_length(key) between 1 and 200),
  constraint replies_status_check check (status between 100 and 599)
);

comment on table treadle.replies is
'Answers to requests that may be repeated, stored with what they did; kept for 24 hours.';
comment on column treadle.replies.principal is 'Who asked: a key is the caller''s own.';
comment on column treadle.replies.hash is 'Of the method, the address and the body.';

create index replies_created_idx on treadle.replies (created_at);
