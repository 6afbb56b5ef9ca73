-- 0004_history: what happened: ended attempts, dead letters, events.

create table treadle.attempts (
  task_id      uuid not null,
  claim_token  uuid not null,
  attempt      smallint not null,
  agent_id     text not null,
  claimed_at   timestamptz not null,
  started_at   timestamptz,
  ended_at     timestamptz not null default clock_timestamp(),
  outcome      text not null,
  class        text,
  reason       text,
  error        text,
  model        text,
  cost_usd     numeric(14, 6) not null default 0,
  constraint attempts_pkey primary key (task_id, claim_token),
  constraint attempts_outcome_check check (
    outcome in ('failed', 'rate_limited', 'cancelled', 'released')
  ),
  constraint attempts_class_check check (
    class in (
      'timeout', 'crash', 'rate_limit', 'invalid_output', 'error',
      'auth_failure', 'budget_exceeded', 'refused'
    )
  )
);

comment on table treadle.attempts is
'Append-only: one row per attempt that ended without completing its task.';
comment on column treadle.attempts.reason is
'What ended it: the handler, or the reaper (claim_expired, heartbeat_timeout, timeout).';

create index attempts_ended_idx on treadle.attempts (ended_at);

create table treadle.dead_letters (
  id                uuid not null default treadle.uuidv7(),
  task_id           uuid not null,
  dead_lettered_at  timestamptz not null default clock_timestamp(),
  attempts          smallint not null,
  class             text not null,
  reason            text,
  poison_pill       boolean not null default false,
  total_cost_usd    numeric(14, 6) not null default 0,
  resolved_at       timestamptz,
  resolution        text,
  reviewer          text,
  note              text,
  changes           jsonb,
  constraint dead_letters_pkey primary key (id),
  constraint dead_letters_resolution_check check (
    resolution in ('retry', 'cancel', 'modify_and_retry')
  ),
  constraint dead_letters_review_check check (
    num_nonnulls(resolved_at, resolution, reviewer) in (0, 3)
  )
);

comment on table treadle.dead_letters is
'Tasks that gave up, and what a person decided; a task can come here more than once.';

create unique index dead_letters_open_idx on treadle.dead_letters (task_id)
where resolution is null;

create index dead_letters_task_idx on treadle.dead_letters (task_id);

create table treadle.events (
  id       bigint not null generated always as identity,
  at       timestamptz not null default clock_timestamp(),
  kind     text not null,
  task_id  uuid,
  queue    text,
  actor    text,
  data     jsonb not null default '{}',
  constraint events_pkey primary key (id)
);

comment on table treadle.events is
'Outbox of what matters; every transition too, for queues whose audit is full.';

create index events_task_idx on treadle.events (task_id)
where task_id is not null;

-- What the end of an attempt hands from the decision to the history.
create type treadle.ended_attempt as (
  place        tid,
  task_id      uuid,
  claim_token  uuid,
  agent_id     text,
  claimed_at   timestamptz,
  started_at   timestamptz,
  attempt      smallint,
  cost_usd     numeric,
  class        text,
  reason       text,
  error        text,
  next         text,
  delay_s      double precision,
  poison_pill  boolean,
  refunded     boolean
);
