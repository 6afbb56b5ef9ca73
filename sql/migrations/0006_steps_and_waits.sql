-- 0006_steps_and_waits: what a task keeps over its attempts: steps, waits and artifacts.

create table treadle.steps (
  task_id      uuid not null,
  name         text not null collate "C",
  seq          integer not null,
  kind         text not null default 'step',
  input_hash   text,
  input        text,
  output       jsonb,
  cost_usd     numeric(14, 6) not null default 0,
  attempt      smallint not null,
  agent_id     text,
  claim_token  uuid,
  started_at   timestamptz,
  saved_at     timestamptz not null default clock_timestamp(),
  constraint steps_pkey primary key (task_id, name),
  constraint steps_name_check check (octet_length(name) between 1 and 200),
  constraint steps_kind_check check (kind in ('step', 'spawn', 'wait', 'sleep')),
  constraint steps_cost_check check (cost_usd >= 0)
);

comment on table treadle.steps is
'Saved results of steps, which later attempts reuse: the first result under a name stays.';
comment on column treadle.steps.seq is
'Order in which the steps were saved, from 1; used by forks.';
comment on column treadle.steps.input_hash is
'Hash of the arguments; a call with other arguments is an error.';
comment on column treadle.steps.input is 'The beginning of the arguments, for people to read.';

create unique index steps_seq_idx on treadle.steps (task_id, seq);

create table treadle.waits (
  id              uuid not null default treadle.uuidv7(),
  task_id         uuid not null,
  name            text not null collate "C",
  kind            text not null,
  status          text not null default 'open',
  awaited         boolean not null default false,
  question        text,
  context         jsonb,
  options         jsonb,
  schema          jsonb,
  approvers       integer not null default 1,
  event           text collate "C",
  event_key       text collate "C",
  event_id        bigint,
  budget_id       bigint,
  expires_at      timestamptz,
  on_expiry       text not null default 'fail',
  default_answer  jsonb,
  escalated_at    timestamptz,
  answer          jsonb,
  answered_by     text,
  note            text,
  opened_at       timestamptz not null default clock_timestamp(),
  ended_at        timestamptz,
  constraint waits_pkey primary key (id),
  constraint waits_name_key unique (task_id, name),
  constraint waits_name_check check (octet_length(name) between 1 and 200),
  constraint waits_kind_check check (kind in ('question', 'approval', 'event', 'budget')),
  constraint waits_status_check check (status in ('open', 'answered', 'expired', 'cancelled')),
  constraint waits_end_check check ((ended_at is null) = (status = 'open')),
  constraint waits_approvers_check check (approvers between 1 and 100),
  constraint waits_expiry_check check (on_expiry in ('deny', 'fail', 'default', 'escalate')),
  -- Every client can read times between these two.
  constraint waits_times_check check (
    expires_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00'
  ),
  constraint waits_event_check check ((event is not null) = (kind = 'event'))
);

comment on table treadle.waits is 'Questions, approvals and events that tasks wait for.';
comment on column treadle.waits.awaited is
'Whether the task released its claim until this is answered.';
comment on column treadle.waits.approvers is 'Number of people that must give the same answer.';
comment on column treadle.waits.event_id is
'The event that answered it; a task receives each event once.';
comment on column treadle.waits.budget_id is
'The budget that ran out; null: the limit of the task itself.';

create index waits_open_idx on treadle.waits (opened_at)
where status = 'open';

create index waits_event_idx on treadle.waits (event, event_key)
where status = 'open' and event is not null;

create index waits_expiry_idx on treadle.waits (expires_at)
where status = 'open' and expires_at is not null;

create index waits_budget_idx on treadle.waits (budget_id)
where status = 'open' and budget_id is not null;

create table treadle.answers (
  wait_id  uuid not null,
  actor    text not null,
  value    jsonb not null,
  note     text,
  at       timestamptz not null default clock_timestamp(),
  constraint answers_pkey primary key (wait_id, actor)
);

comment on table treadle.answers is 'Answers to waits; one per person.';

-- The row is locked both when an event is emitted and when a task begins to wait for it, so that
-- neither misses the other.
create table treadle.topics (
  event     text not null collate "C",
  key       text not null collate "C",
  event_id  bigint,
  constraint topics_pkey primary key (event, key)
);

comment on table treadle.topics is 'Events by name and key, with the latest of each.';

create table treadle.artifacts (
  id           uuid not null default treadle.uuidv7(),
  task_id      uuid not null,
  claim_token  uuid not null,
  attempt      smallint,
  agent_id     text,
  name         text not null,
  status       text not null default 'linked',
  key          text,
  uri          text not null,
  media_type   text,
  bytes        bigint,
  sha256       text,
  created_at   timestamptz not null default clock_timestamp(),
  stored_at    timestamptz,
  constraint artifacts_pkey primary key (id),
  constraint artifacts_name_check check (octet_length(name) between 1 and 1000),
  constraint artifacts_status_check check (
    status in ('linked', 'storing', 'stored', 'doomed')
  ),
  constraint artifacts_key_check check ((status = 'linked') = (key is null)),
  constraint artifacts_uri_check check (octet_length(uri) between 1 and 4000),
  constraint artifacts_bytes_check check (bytes >= 0),
  constraint artifacts_stored_check check (
    status <> 'stored' or num_nonnulls(bytes, sha256, stored_at) = 3
  )
);

comment on table treadle.artifacts is 'Files that tasks produced, and where they are.';
comment on column treadle.artifacts.status is
'linked: kept elsewhere; storing: being uploaded; stored: in the store; doomed: to be deleted.';
comment on column treadle.artifacts.key is
'Key of the file in the store; null when it is kept elsewhere.';

create index artifacts_task_idx on treadle.artifacts (task_id);

-- The sweeper reads this index; stored files are not in it.
create index artifacts_unfinished_idx on treadle.artifacts (id)
where status in ('storing', 'doomed');

create table treadle.artifact_store (
  only_one  boolean not null default true,
  id        uuid not null default treadle.uuidv7(),
  constraint artifact_store_pkey primary key (only_one),
  constraint artifact_store_only_one_check check (only_one)
);

comment on table treadle.artifact_store is
'Folder of this database in a store that other databases may share.';
