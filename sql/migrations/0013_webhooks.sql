-- 0013_webhooks: where events are sent, how far each endpoint has come, and its last tries.

create table treadle.webhooks (
  name             text not null,
  id               uuid not null default treadle.uuidv7(),
  url              text not null,
  format           text not null default 'standard',
  stream           text,
  max_length       integer not null default 100000,
  kinds            text[] not null default '{*}',
  filter           jsonb not null default '{}',
  secret           text,
  previous_secret  text,
  previous_until   timestamptz,
  allow_private    boolean not null default false,
  status           text not null default 'active',
  reason           text,
  failures         integer not null default 0,
  failed_since_at  timestamptz,
  next_try_at      timestamptz not null default clock_timestamp(),
  last_status      integer,
  last_error       text,
  last_try_at      timestamptz,
  delivered        bigint not null default 0,
  delivered_at     timestamptz,
  token            uuid,
  lease_until      timestamptz,
  created_at       timestamptz not null default clock_timestamp(),
  created_by       text not null default session_user,
  constraint webhooks_pkey primary key (name),
  constraint webhooks_name_check check (octet_length(name) between 1 and 100),
  constraint webhooks_format_check check (format in ('standard', 'slack', 'redis')),
  constraint webhooks_stream_check check ((stream is not null) = (format = 'redis')),
  constraint webhooks_secret_check check ((secret is not null) = (format <> 'redis')),
  constraint webhooks_status_check check (status in ('active', 'paused', 'failing')),
  constraint webhooks_lease_check check ((token is null) = (lease_until is null))
);

comment on table treadle.webhooks is
'Endpoints that events are sent to, each in order; its place is in event_readers.';
comment on column treadle.webhooks.secret is
'Signs the messages. No view shows it; functions of the operator give it to the notifier.';
comment on column treadle.webhooks.previous_secret is
'Signs them too until previous_until, so that a receiver can change over.';
comment on column treadle.webhooks.token is
'Who delivers now: fresh and random each time, void after lease_until.';

create table treadle.webhook_deliveries (
  id        bigint not null generated always as identity,
  webhook   text not null,
  event_id  bigint not null,
  at        timestamptz not null default clock_timestamp(),
  status    integer,
  error     text,
  ms        integer not null default 0,
  constraint webhook_deliveries_pkey primary key (id)
);

comment on table treadle.webhook_deliveries is 'The last tries of each webhook; older ones go.';

create index webhook_deliveries_idx on treadle.webhook_deliveries (webhook, id);

-- What it takes to send to an endpoint; for the notifier only.
create type treadle.webhook_target as (
  name           text,
  id             uuid,
  url            text,
  format         text,
  stream         text,
  max_length     integer,
  secrets        text[],
  allow_private  boolean
);
