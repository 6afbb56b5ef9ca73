-- 0010_retention: the archive of pruned tasks and DAGs, and how long other rows are kept.

-- Insert-only. The columns task, spec, output and documents together hold the whole row of the
-- task; columns that were null are left out.
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

comment on table treadle.task_history is 'Pruned tasks, with everything that belonged to them.';
comment on column treadle.task_history.task is
'The row of the task without its documents; the view archived_tasks has all of it.';
comment on column treadle.task_history.documents is 'The other json columns of the row, by name.';

-- Not unique: a caller that makes its own ids may use one again once its task is gone.
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

comment on table treadle.dag_history is 'Pruned DAGs; their tasks are in task_history.';

create index dag_history_id_idx on treadle.dag_history (id);

create table treadle.retention (
  kind    text not null,
  keep_s  double precision not null,
  constraint retention_pkey primary key (kind),
  constraint retention_kind_check check (kind in ('events', 'agents', 'runs')),
  constraint retention_keep_check check (keep_s between 0 and 3153600000)
);

comment on table treadle.retention is
'How long rows other than tasks are kept; a kind without a row is kept forever.';

-- One batch of tasks that the pruner has found, and where it continues.
create type treadle.found_tasks as (
  place  tid,
  ids    uuid[]
);
