-- 0004_dags: groups of tasks that depend on each other, and their dependencies.

create table treadle.dags (
  id               uuid not null default treadle.uuidv7(),
  name             text not null,
  status           text not null default 'open',
  on_dead_letter   text not null default 'wait',
  tasks            integer not null default 0,
  completed        integer not null default 0,
  cancelled        integer not null default 0,
  dead_lettered    integer not null default 0,
  project_id       uuid,
  idempotency_key  text collate "C",
  created_by       text not null default session_user,
  created_at       timestamptz not null default clock_timestamp(),
  started_at       timestamptz,
  ended_at         timestamptz,
  meta             jsonb not null default '{}',
  constraint dags_pkey primary key (id),
  constraint dags_name_check check (octet_length(name) between 1 and 1000),
  constraint dags_status_check check (
    status in ('open', 'running', 'failed', 'completed', 'cancelled')
  ),
  constraint dags_policy_check check (on_dead_letter in ('wait', 'cancel', 'continue')),
  constraint dags_key_check check (octet_length(idempotency_key) between 1 and 200),
  constraint dags_end_check check (
    (ended_at is not null) = (status in ('completed', 'cancelled'))
  ),
  -- Each task is counted once: this fails before a wrong count can end a DAG too early.
  constraint dags_count_check check (
    least(completed, cancelled, dead_lettered) >= 0
    and completed + cancelled + dead_lettered <= tasks
  )
)
with (fillfactor = 50);

comment on table treadle.dags is
'Groups of tasks that depend on each other, with counters of their progress.';
comment on column treadle.dags.status is
'open: being built; failed: a dead letter needs a decision; completed, cancelled: ended.';
comment on column treadle.dags.on_dead_letter is
'What happens to the dependents of a dead-lettered task, unless the dependency overrides it.';

create unique index dags_key_idx on treadle.dags (idempotency_key)
where idempotency_key is not null;

create table treadle.dependencies (
  task_id         uuid not null,
  depends_on      uuid not null,
  created_at      timestamptz not null default clock_timestamp(),
  met_at          timestamptz,
  optional        boolean not null default false,
  on_dead_letter  text not null default 'wait',
  constraint dependencies_pkey primary key (depends_on, task_id),
  constraint dependencies_self_check check (task_id <> depends_on),
  constraint dependencies_policy_check check (
    on_dead_letter in ('wait', 'cancel', 'continue')
  )
);

comment on table treadle.dependencies is 'task_id waits for depends_on.';
comment on column treadle.dependencies.met_at is 'When it stopped blocking its dependent.';
comment on column treadle.dependencies.optional is
'The dependent continues when the dependency is cancelled.';

create index dependencies_task_idx on treadle.dependencies (task_id);
