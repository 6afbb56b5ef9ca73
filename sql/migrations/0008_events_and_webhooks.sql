-- 0008_events_and_webhooks: the event log, its readers and listeners, and webhooks.

create table treadle.events (
  id         bigint not null generated always as identity,
  xid        xid8 not null default pg_current_xact_id(),
  at         timestamptz not null default clock_timestamp(),
  task_id    uuid,
  dag_id     uuid,
  kind       text not null,
  queue      text,
  actor      text,
  key        text,
  dedup_key  text,
  data       jsonb not null default '{}',
  constraint events_pkey primary key (id)
);

comment on table treadle.events is
'Event log: important changes, and every transition in queues with a full audit.';
comment on column treadle.events.xid is
'The transaction that wrote it: readers stay behind the oldest one that is still running.';
comment on column treadle.events.key is
'Subject of an emitted event, empty if it has none; null for events of treadle itself.';

-- Ids are assigned before transactions commit, so that a reader that goes by id alone would miss
-- events that commit late. Readers go by transaction and id.
create index events_order_idx on treadle.events (xid, id);

create index events_task_idx on treadle.events (task_id)
where task_id is not null;

create index events_dag_idx on treadle.events (dag_id)
where dag_id is not null;

create index events_emitted_idx on treadle.events (kind, key, id)
where key is not null;

create unique index events_dedup_idx on treadle.events (kind, dedup_key)
where dedup_key is not null;

create table treadle.event_readers (
  name     text not null,
  xid      xid8 not null,
  id       bigint not null,
  read_at  timestamptz not null default clock_timestamp(),
  constraint event_readers_pkey primary key (name),
  constraint event_readers_name_check check (octet_length(name) between 1 and 200)
);

comment on table treadle.event_readers is 'Position of each reader in the event log.';

-- Sessions that want a NOTIFY at once; readers find every event without it.
create table treadle.event_listeners (
  name             text not null,
  listening_until  timestamptz not null,
  kinds            text[],
  constraint event_listeners_pkey primary key (name),
  constraint event_listeners_name_check check (octet_length(name) between 1 and 200)
)
with (fillfactor = 50);

comment on table treadle.event_listeners is
'Listeners that are notified of new events, and until when.';
comment on column treadle.event_listeners.kinds is 'Kinds to notify about; null: all.';

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
'Endpoints that events are sent to in order; the position of each is in event_readers.';
comment on column treadle.webhooks.secret is
'Signs the messages. No view shows it; only functions for operators return it.';
comment on column treadle.webhooks.previous_secret is
'Also signs the messages until previous_until, so that a receiver can switch.';
comment on column treadle.webhooks.token is
'Lease of the current delivery: new and random each time, void after lease_until.';

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

comment on table treadle.webhook_deliveries is
'The latest delivery attempts of each webhook; older ones are deleted.';

create index webhook_deliveries_idx on treadle.webhook_deliveries (webhook, id);

-- What the notifier needs to send to an endpoint; no other function returns it.
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
