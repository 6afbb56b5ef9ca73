-- 0011_schedules: work that starts by the calendar, and what became of each time.

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
  -- Five fields or a word; what they say is read where the calendar is known.
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
'Work that starts by the calendar: a cron line in a time zone, and the task or DAG it makes.';
comment on column treadle.schedules.template is
'{"task": …} as a task of a DAG, or {"dag": …} as create_dag takes it.';
comment on column treadle.schedules.catch_up is
'What becomes of times that no scheduler came to within grace_s: none, one for all, each.';
comment on column treadle.schedules.overlap is
'What happens at a time when the work of an earlier one has not ended.';
comment on column treadle.schedules.revision is
'Another after each change: what a scheduler worked out before it counts for nothing.';
comment on column treadle.schedules.next_at is
'The next nominal time; empty: the first after from_at, a scheduler works it out; '
'infinity: there is none, last_error says why.';
comment on column treadle.schedules.last_at is 'The last nominal time that was dealt with.';
comment on column treadle.schedules.declared is
'What code said of it last; the same again changes nothing that an operator has set since.';

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
  -- The fence: a nominal time is dealt with once. A run that a person asked for has none.
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
'What became of each nominal time of a schedule, and of runs that a person asked for.';
comment on column treadle.schedule_runs.missed_until is
'Nominal times from nominal_at to this one went by and are not made up for one by one.';

create index schedule_runs_made_idx on treadle.schedule_runs (schedule_id, id)
where status = 'queued';
