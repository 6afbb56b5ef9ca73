-- 0015_retention: how long finished tasks are kept, and where they go then.

alter table treadle.queues
add column keep_completed_s double precision,
add column keep_cancelled_s double precision,
add column keep_dead_s double precision,
add column prune_mode text not null default 'archive',
add constraint queues_keep_check check (
  least(keep_completed_s, keep_cancelled_s, keep_dead_s) >= 0
  and greatest(keep_completed_s, keep_cancelled_s, keep_dead_s) <= 3153600000
),
add constraint queues_prune_check check (prune_mode in ('archive', 'drop'));

comment on column treadle.queues.keep_completed_s is
'Completed tasks go so many seconds after their end; empty: never.';
comment on column treadle.queues.keep_cancelled_s is
'Cancelled tasks go so many seconds after their end; empty: never.';
comment on column treadle.queues.keep_dead_s is
'Dead letters that nobody decided about go after so many seconds; empty: never.';
comment on column treadle.queues.prune_mode is
'archive: what goes is kept in task_history; drop: it is not.';

-- Insert-only. The row of the task is whole, in task, spec, output and documents; columns that were
-- empty are left out.
create table treadle.task_history (
  id            uuid not null,
  queue         text not null,
  type          text not null,
  status        text not null,
  dag_id        uuid,
  parent_id     uuid,
  created_at    timestamptz not null,
  completed_at  timestamptz not null,
  archived_at   timestamptz not null default clock_timestamp(),
  cost_usd      numeric(14, 6) not null default 0,
  depends_on    uuid[],
  task          json not null,
  spec          jsonb not null,
  output        jsonb,
  documents     jsonb,
  attempts      jsonb,
  steps         jsonb,
  waits         jsonb,
  dead_letters  jsonb,
  spend         jsonb,
  artifacts     jsonb,
  events        jsonb
)
with (autovacuum_vacuum_insert_scale_factor = 0.1);

comment on table treadle.task_history is
'Finished tasks that were pruned, with all that belonged to them.';
comment on column treadle.task_history.task is
'The row of the task without its documents; the view archived_tasks has all of it.';
comment on column treadle.task_history.documents is 'What else in the row is json, by column.';

-- Not unique: who makes ids by hand may use one again once its task is gone.
create index task_history_id_idx on treadle.task_history (id);

create index task_history_completed_idx on treadle.task_history using brin (completed_at)
with (pages_per_range = 32, autosummarize = on);

create table treadle.dag_history (
  id           uuid not null,
  name         text not null,
  status       text not null,
  created_at   timestamptz not null,
  ended_at     timestamptz not null,
  archived_at  timestamptz not null default clock_timestamp(),
  dag          jsonb not null,
  budgets      jsonb,
  events       jsonb
);

comment on table treadle.dag_history is
'Ended DAGs that were pruned; their tasks are in task_history.';

create index dag_history_id_idx on treadle.dag_history (id);

-- By the hour, since no budget has a shorter period: what is summed up here counts as before.
create table treadle.spend_hours (
  hour           timestamptz not null,
  agent_id       text,
  model          text,
  type           text not null,
  project_id     uuid,
  calls          bigint not null,
  input_tokens   bigint not null,
  output_tokens  bigint not null,
  usd            numeric(20, 6) not null,
  constraint spend_hours_key unique nulls not distinct (hour, agent_id, model, type, project_id)
)
with (fillfactor = 90);

comment on table treadle.spend_hours is
'What pruned tasks have cost, summed up by hour: the ledger without its single calls.';

-- Who refers to a task by its inputs alone, with no edge to it: forks, and readers of artifacts.
create index tasks_references_idx on treadle.tasks (id)
where
inputs is not null and status not in ('completed', 'cancelled')
and (forked_from is not null or inputs::text like '%artifact:%');

create table treadle.retention (
  kind    text not null,
  keep_s  double precision not null,
  constraint retention_pkey primary key (kind),
  constraint retention_kind_check check (kind in ('events', 'agents', 'runs')),
  constraint retention_keep_check check (keep_s between 0 and 3153600000)
);

comment on table treadle.retention is
'How long other things than tasks are kept; what is not here is kept for ever.';

-- A stretch of the walk over the tasks.
create type treadle.found_tasks as (
  place  tid,
  ids    uuid[]
);
