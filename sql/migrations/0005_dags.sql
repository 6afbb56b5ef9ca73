-- 0005_dags: tasks that belong together and wait for each other.

create table treadle.dags (
  id               uuid not null default treadle.uuidv7(),
  name             text not null,
  status           text not null default 'open',
  on_dead_letter   text not null default 'wait',
  tasks            integer not null default 0,
  completed        integer not null default 0,
  cancelled        integer not null default 0,
  dead_lettered    integer not null default 0,
  budget_usd       numeric(14, 6),
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
  constraint dags_budget_check check (budget_usd >= 0 and budget_usd < 'Infinity'),
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

comment on table treadle.dags is 'Tasks that belong together; the counters say how far they are.';
comment on column treadle.dags.status is
'open: being built; failed: a task gave up and waits for a person; completed, cancelled: ended.';
comment on column treadle.dags.on_dead_letter is
'What becomes of the dependents of a task that gave up, unless the edge says otherwise.';

create unique index dags_key_idx on treadle.dags (idempotency_key)
where idempotency_key is not null;

alter table treadle.tasks
add column name text collate "C",
add column inputs jsonb,
add column forked_from uuid,
add column durable boolean not null default false,
add constraint tasks_blocked_check check (blocked_count >= 0),
-- What can be claimed waits for nothing.
add constraint tasks_open_check check (blocked_count = 0 or status not in ('ready', 'retrying'));

comment on column treadle.tasks.name is 'Its name in its DAG.';
comment on column treadle.tasks.inputs is
'Arguments that are outputs of other tasks: {"brief": "task:<id>:output"}; filled in at claim.';
comment on column treadle.tasks.forked_from is 'The task whose first steps it was given.';
comment on column treadle.tasks.durable is 'It has steps or waits, to be read with the next claim.';

create unique index tasks_dag_idx on treadle.tasks (dag_id, name)
where dag_id is not null;

create index tasks_parent_idx on treadle.tasks (parent_id)
where parent_id is not null;

alter table treadle.dependencies
add column optional boolean not null default false,
add column on_dead_letter text not null default 'wait',
add column met_at timestamptz,
add constraint dependencies_policy_check check (
  on_dead_letter in ('wait', 'cancel', 'continue')
);

comment on column treadle.dependencies.optional is
'The dependent goes on without it when it is cancelled.';
comment on column treadle.dependencies.met_at is 'When it stopped holding its dependent back.';

-- Edges onto tasks that exist are checked for cycles one after the other.
create table treadle.locks (
  name     text not null,
  touched  bigint not null default 0,
  constraint locks_pkey primary key (name)
)
with (fillfactor = 50);

comment on table treadle.locks is 'Rows that are updated to make things happen one by one.';

alter table treadle.events
add column dag_id uuid,
add column key text,
add column dedup_key text;

comment on column treadle.events.key is
'What an emitted event is about, empty for nothing in particular; null for treadle''s own.';

create index events_dag_idx on treadle.events (dag_id)
where dag_id is not null;

create index events_emitted_idx on treadle.events (kind, key, id)
where key is not null;

create unique index events_dedup_idx on treadle.events (kind, dedup_key)
where dedup_key is not null;

-- They return something else now.
drop function if exists treadle.claim_tasks(
  text, text[], text[], integer, boolean, uuid, boolean
);
drop function if exists treadle.restart_task(treadle.tasks, jsonb, timestamptz);
