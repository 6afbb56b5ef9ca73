-- 0008_events: readers follow the events in order and miss none.

-- Numbers are given before transactions commit: what commits late would be passed by.
alter table treadle.events
add column xid xid8 not null default pg_current_xact_id();

comment on column treadle.events.xid is
'The transaction that wrote it: readers stay behind the oldest one that still runs.';

create index events_order_idx on treadle.events (xid, id);

create table treadle.event_readers (
  name     text not null,
  xid      xid8 not null,
  id       bigint not null,
  read_at  timestamptz not null default clock_timestamp(),
  constraint event_readers_pkey primary key (name),
  constraint event_readers_name_check check (octet_length(name) between 1 and 200)
);

comment on table treadle.event_readers is 'How far each reader of the events has come.';
