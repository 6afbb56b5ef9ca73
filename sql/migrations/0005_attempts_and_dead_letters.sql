-- 0005_attempts_and_dead_letters: failed attempts, dead letters, and decisions about them.

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
  feedback     jsonb,
  model        text,
  cost_usd     numeric(14, 6) not null default 0,
  constraint attempts_pkey primary key (task_id, claim_token),
  constraint attempts_outcome_check check (
    outcome in ('failed', 'rate_limited', 'cancelled', 'released', 'suspended')
  ),
  -- unavailable: the database was not reachable, which does not count as a failure.
  constraint attempts_class_check check (
    class in (
      'timeout', 'crash', 'rate_limit', 'invalid_output', 'error', 'auth_failure',
      'budget_exceeded', 'refused', 'unavailable'
    )
  )
);

comment on table treadle.attempts is
'Append-only: one row per attempt that ended without completing its task.';
comment on column treadle.attempts.reason is
'What ended the attempt: the handler, or the reaper (claim_expired, heartbeat_timeout, timeout).';
comment on column treadle.attempts.feedback is
'Messages of validators about its output, as a list of strings.';

create index attempts_ended_idx on treadle.attempts (ended_at);

create table treadle.attempt_notes (
  task_id      uuid not null,
  number       smallint not null,
  claim_token  uuid not null,
  attempt      smallint not null,
  at           timestamptz not null,
  note         text not null,
  constraint attempt_notes_pkey primary key (task_id, number)
);

comment on table treadle.attempt_notes is 'Notes of attempts for later attempts of the same task.';

-- An ended attempt with the decision about it, as record_attempts writes it to the history.
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
  refunded     boolean,
  model        text
);

create table treadle.dead_letters (
  id                uuid not null default treadle.uuidv7(),
  task_id           uuid not null,
  dead_lettered_at  timestamptz not null default clock_timestamp(),
  attempts          smallint not null,
  class             text not null,
  reason            text,
  about             text not null,
  fingerprint       text not null,
  poison_pill       boolean not null default false,
  total_cost_usd    numeric(14, 6) not null default 0,
  escalated_at      timestamptz,
  escalated_to      text,
  resolved_at       timestamptz,
  resolution        text,
  reviewer          text,
  note              text,
  changes           jsonb,
  constraint dead_letters_pkey primary key (id),
  constraint dead_letters_escalation_check check (
    num_nonnulls(escalated_at, escalated_to) in (0, 2)
  ),
  constraint dead_letters_resolution_check check (
    resolution in ('retry', 'cancel', 'modify_and_retry')
  ),
  constraint dead_letters_review_check check (
    num_nonnulls(resolved_at, resolution, reviewer) in (0, 3)
  )
);

comment on table treadle.dead_letters is
'Dead-lettered tasks, and the decisions about them; a task can have several.';
comment on column treadle.dead_letters.about is
'The error without its variable parts; see error_pattern.';
comment on column treadle.dead_letters.fingerprint is
'Group key: dead letters of one class with the same error.';

create unique index dead_letters_open_idx on treadle.dead_letters (task_id)
where resolution is null;

create index dead_letters_task_idx on treadle.dead_letters (task_id);

create index dead_letters_group_idx on treadle.dead_letters (fingerprint, dead_lettered_at)
where resolution is null;

-- No foreign key to the dead letter or its task: decisions stay when those are deleted.
create table treadle.dead_letter_decisions (
  id            bigint not null generated always as identity,
  at            timestamptz not null default clock_timestamp(),
  letter_id     uuid not null,
  task_id       uuid not null,
  decision      text not null,
  actor         text not null,
  note          text,
  changes       jsonb,
  delay_s       double precision,
  escalated_to  text,
  queue         text not null,
  type          text not null,
  class         text not null,
  fingerprint   text not null,
  about         text not null,
  constraint dead_letter_decisions_pkey primary key (id),
  constraint dead_letter_decisions_decision_check check (
    decision in ('retry', 'cancel', 'modify_and_retry', 'escalate')
  ),
  constraint dead_letter_decisions_to_check check (
    (escalated_to is not null) = (decision = 'escalate')
  )
);

comment on table treadle.dead_letter_decisions is
'Append-only: decisions about dead letters, when and why; they outlive the tasks.';

create index dead_letter_decisions_task_idx on treadle.dead_letter_decisions (task_id);

-- An id that a caller gave, the dead letter that it means, and whether that is still open.
create type treadle.letter as (
  id         uuid,
  letter_id  uuid,
  task_id    uuid,
  queue      text,
  type       text,
  is_open    boolean
);
