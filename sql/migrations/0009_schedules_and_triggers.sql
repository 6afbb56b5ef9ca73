-- 0009_schedules_and_triggers: tasks and DAGs that start by the calendar or when an event happens.

create table treadle.schedules (
  id             uuid not null default treadle.uuidv7(),
  name           text not null collate "C",
  cron           text not null,
  timezone       text not null default 'UTC',
  template       jsonb not null,
  jitter_s       integer not null default 0,
  catch_up       text not null default 'one',
  overlap        text not null default 'allow',
  grace_s        integer not null default 60,
  revision       bigint not null default 1,
  from_at        timestamptz not null default clock_timestamp(),
  next_at        timestamptz,
  last_at        timestamptz,
  last_status    text,
  last_error     text,
  last_task      uuid,
  last_dag       uuid,
  paused_at      timestamptz,
  paused_by      text,
  paused_reason  text,
  declared       jsonb,
  created_by     text not null default session_user,
  created_at     timestamptz not null default clock_timestamp(),
  updated_at     timestamptz not null default clock_timestamp(),
  constraint schedules_pkey primary key (id),
  constraint schedules_name_key unique (name),
  constraint schedules_name_check check (name ~ '^[A-Za-z0-9_.:/-]{1,150}$'),
  -- Five fields or an @ word. Only the characters are checked here: the scheduler parses them.
  constraint schedules_cron_check check (
    octet_length(cron) <= 200
    and cron ~ '^(@[a-z]+|[0-9A-Za-z*/,#-]+( [0-9A-Za-z*/,#-]+){4})$'
  ),
  constraint schedules_timezone_check check (timezone ~ '^[A-Za-z0-9_+/-]{1,64}$'),
  constraint schedules_template_check check (
    jsonb_typeof(template) = 'object' and (template ? 'task') <> (template ? 'dag')
  ),
  constraint schedules_jitter_check check (jitter_s between 0 and 86400),
  constraint schedules_grace_check check (grace_s between 1 and 86400),
  constraint schedules_catch_up_check check (catch_up in ('skip', 'one', 'all')),
  constraint schedules_overlap_check check (overlap in ('allow', 'skip', 'cancel_previous'))
)
with (fillfactor = 50);

comment on table treadle.schedules is
'Recurring work: a cron expression in a time zone, and the task or DAG that it enqueues.';
comment on column treadle.schedules.template is
'{"task": …} in the form of a task of a DAG, or {"dag": …} as create_dag takes it.';
comment on column treadle.schedules.catch_up is
'What to run for times missed by more than grace_s: nothing, one run for all, or each.';
comment on column treadle.schedules.overlap is 'What to do when the previous run has not ended.';
comment on column treadle.schedules.revision is
'Incremented by each change: what a scheduler computed for an older revision is ignored.';
comment on column treadle.schedules.next_at is
'The next nominal time. Null: the first one after from_at, computed by a scheduler. Infinity: '
'there is none, see last_error.';
comment on column treadle.schedules.last_at is
'The last nominal time that was handled, or the time of a manual run since.';
comment on column treadle.schedules.declared is
'The last declaration in code; repeating it does not override changes by an operator.';

create index schedules_next_idx on treadle.schedules (next_at) where paused_at is null;

create table treadle.schedule_runs (
  id            bigint not null generated always as identity,
  schedule_id   uuid not null,
  schedule      text not null,
  nominal_at    timestamptz,
  missed_until  timestamptz,
  fired_at      timestamptz not null,
  status        text not null,
  task_id       uuid,
  dag_id        uuid,
  error         text,
  actor         text,
  constraint schedule_runs_pkey primary key (id),
  -- The fence: each nominal time is handled once. A manual run has no nominal time.
  constraint schedule_runs_nominal_key unique (schedule_id, nominal_at),
  constraint schedule_runs_status_check check (
    status in (
      'queued', 'skipped_queue_full', 'skipped_overlap', 'skipped_missed', 'skipped_duplicate',
      'failed'
    )
  ),
  constraint schedule_runs_made_check check (
    (status = 'queued') = (num_nonnulls(task_id, dag_id) = 1)
  )
);

comment on table treadle.schedule_runs is
'Result of each nominal time of a schedule, and of manual runs.';
comment on column treadle.schedule_runs.missed_until is
'Nominal times from nominal_at to this one were missed and are not run one by one.';

create index schedule_runs_made_idx on treadle.schedule_runs (schedule_id, id)
where status = 'queued';

create table treadle.triggers (
  id             uuid not null default treadle.uuidv7(),
  name           text not null,
  description    text,
  on_event       text not null,
  filter         jsonb not null default '{}',
  template       jsonb not null,
  failure_rate   jsonb,
  max_depth      smallint not null default 5,
  max_per_hour   integer default 1000,
  created_by     text not null default session_user,
  created_at     timestamptz not null default clock_timestamp(),
  updated_at     timestamptz not null default clock_timestamp(),
  active_at      timestamptz not null default clock_timestamp(),
  paused_at      timestamptz,
  paused_by      text,
  paused_reason  text,
  fired          bigint not null default 0,
  refused        bigint not null default 0,
  failed         bigint not null default 0,
  fired_at       timestamptz,
  refused_at     timestamptz,
  last_task      uuid,
  last_dag       uuid,
  last_error     text,
  error_at       timestamptz,
  checked_at     timestamptz,
  passed_at      timestamptz,
  constraint triggers_pkey primary key (id),
  constraint triggers_name_key unique (name),
  constraint triggers_name_check check (octet_length(name) between 1 and 100),
  constraint triggers_event_check check (octet_length(on_event) between 1 and 200),
  constraint triggers_filter_check check (jsonb_typeof(filter) = 'object'),
  constraint triggers_template_check check (
    jsonb_typeof(template) = 'object' and (template ? 'task') <> (template ? 'dag')
  ),
  constraint triggers_depth_check check (max_depth between 1 and 100),
  constraint triggers_hourly_check check (max_per_hour between 1 and 1000000)
);

comment on table treadle.triggers is
'Rules that enqueue a task or a DAG from a template when an event happens.';
comment on column treadle.triggers.filter is 'What the event must contain.';
comment on column treadle.triggers.failure_rate is
'For type.failure_rate_exceeded: the type, the time window and the share of failed attempts.';
comment on column treadle.triggers.max_depth is
'Maximum length of a chain of triggers, including this one; stops loops.';
comment on column treadle.triggers.active_at is 'Events before this time are ignored.';
comment on column treadle.triggers.refused_at is 'When a limit last prevented it from firing.';
comment on column treadle.triggers.checked_at is 'When its failure rate was last checked.';
comment on column treadle.triggers.passed_at is 'When its failure rate last exceeded the limit.';

create index triggers_event_idx on treadle.triggers (on_event)
where paused_at is null;

create table treadle.trigger_fires (
  trigger_id  uuid not null,
  event_id    bigint not null,
  fired_at    timestamptz not null default clock_timestamp(),
  verdict     text not null,
  task_id     uuid,
  dag_id      uuid,
  depth       smallint not null,
  problem     text,
  constraint trigger_fires_pkey primary key (trigger_id, event_id),
  -- waiting: the queue was full, and the trigger tries again.
  constraint trigger_fires_verdict_check check (
    verdict in ('fired', 'waiting', 'refused', 'failed')
  ),
  constraint trigger_fires_made_check check (
    num_nonnulls(task_id, dag_id, problem) = 1 and (verdict = 'fired') = (problem is null)
  )
);

comment on table treadle.trigger_fires is
'What a trigger did with an event, or why it could not; one row per event.';
comment on column treadle.trigger_fires.depth is 'Length of the chain of triggers that led to it.';

create index trigger_fires_made_idx on treadle.trigger_fires (coalesce(task_id, dag_id))
where verdict = 'fired';

create index trigger_fires_time_idx on treadle.trigger_fires (trigger_id, fired_at);

create index trigger_fires_waiting_idx on treadle.trigger_fires (trigger_id, event_id)
where verdict = 'waiting';
