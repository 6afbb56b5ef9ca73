-- 0002_queues_and_agents: what tasks refer to: projects, queues, task types, agents and lanes.

create table treadle.projects (
  id            uuid not null default treadle.uuidv7(),
  name          text not null,
  label         text,
  external_ref  text,
  share         numeric(10, 3) not null default 1,
  created_at    timestamptz not null default clock_timestamp(),
  updated_at    timestamptz not null default clock_timestamp(),
  constraint projects_pkey primary key (id),
  constraint projects_name_key unique (name),
  -- Tokens, budgets and options refer to a project by its unique name. Several projects of the work
  -- API may have the same name: the later ones get a number in `name` and keep theirs in `label`.
  constraint projects_name_check check (
    octet_length(name) between 1 and case when label is null then 200 else 210 end
  ),
  constraint projects_label_check check (octet_length(label) between 1 and 200),
  constraint projects_share_check check (share > 0 and share <= 1000000)
);

comment on table treadle.projects is 'Whose work it is: for fair shares and budgets.';
comment on column treadle.projects.label is
'What the work API calls it, where another project has that name.';
comment on column treadle.projects.share is
'Its part of what runs in a fair queue, against the shares of the others that wait there.';

create table treadle.queues (
  name              text not null,
  priority          smallint,
  max_attempts      smallint,
  timeout_s         double precision,
  ageing_rate       numeric(10, 6),
  retry             jsonb not null default '{}',
  max_spec_bytes    integer not null default 1048576,
  max_depth         integer,
  fair              boolean not null default false,
  audit             text not null default 'compact',
  keep_completed_s  double precision,
  keep_cancelled_s  double precision,
  keep_dead_s       double precision,
  prune_mode        text not null default 'archive',
  paused_at         timestamptz,
  paused_by         text,
  paused_reason     text,
  created_at        timestamptz not null default clock_timestamp(),
  constraint queues_pkey primary key (name),
  -- The notification channel is `task_ready.` and the name; a channel name has at most 63 bytes.
  constraint queues_name_check check (name ~ '^[a-z0-9_.-]{1,48}$'),
  constraint queues_priority_check check (priority between 0 and 100),
  constraint queues_max_attempts_check check (max_attempts between 1 and 1000),
  constraint queues_timeout_check check (timeout_s > 0 and timeout_s <= 31536000),
  constraint queues_ageing_check check (ageing_rate between 0 and 1000),
  constraint queues_spec_bytes_check check (max_spec_bytes between 1 and 268435456),
  constraint queues_depth_check check (max_depth >= 1),
  constraint queues_audit_check check (audit in ('compact', 'full')),
  constraint queues_keep_check check (
    least(keep_completed_s, keep_cancelled_s, keep_dead_s) >= 0
    and greatest(keep_completed_s, keep_cancelled_s, keep_dead_s) <= 3153600000
  ),
  constraint queues_prune_check check (prune_mode in ('archive', 'drop'))
);

comment on table treadle.queues is 'Where tasks wait; defaults for those that do not say.';
comment on column treadle.queues.ageing_rate is
'Priority points that a waiting task gains each minute.';
comment on column treadle.queues.retry is
'Retry policy below the type''s and the task''s; see treadle.retry_policy.';
comment on column treadle.queues.max_depth is
'So many tasks may wait here; one more is refused. Empty: any number.';
comment on column treadle.queues.fair is 'Projects take turns, by their shares.';
comment on column treadle.queues.audit is
'compact: what matters is an event; full: every transition is.';
comment on column treadle.queues.keep_completed_s is
'Completed tasks go so many seconds after their end; empty: never.';
comment on column treadle.queues.keep_cancelled_s is
'Cancelled tasks go so many seconds after their end; empty: never.';
comment on column treadle.queues.keep_dead_s is
'Dead letters that nobody decided about go after so many seconds; empty: never.';
comment on column treadle.queues.prune_mode is
'archive: what goes is kept in task_history; drop: it is not.';

insert into treadle.queues (name) values ('default');

-- A hint that may be lost: the table is empty after a crash, and idle workers write it again within
-- seconds.
create unlogged table treadle.idle_queues (
  queue       text not null,
  idle_until  timestamptz not null,
  constraint idle_queues_pkey primary key (queue)
)
with (fillfactor = 50);

comment on table treadle.idle_queues is 'Queues on which a worker waits to be woken.';

create table treadle.task_types (
  name             text not null,
  description      text,
  priority         smallint,
  max_attempts     smallint,
  timeout_s        double precision,
  ageing_rate      numeric(10, 6),
  retry            jsonb not null default '{}',
  gates            text[] not null default '{}',
  breaker          jsonb not null default '{}',
  max_cost_usd     numeric(14, 6),
  max_tokens       bigint,
  on_budget        text,
  validation       jsonb,
  report           text,
  models           text[],
  fallback_models  text[],
  paused_at        timestamptz,
  paused_by        text,
  paused_reason    text,
  created_at       timestamptz not null default clock_timestamp(),
  constraint task_types_pkey primary key (name),
  constraint task_types_name_check check (name ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
  constraint task_types_priority_check check (priority between 0 and 100),
  constraint task_types_max_attempts_check check (max_attempts between 1 and 1000),
  constraint task_types_timeout_check check (timeout_s > 0 and timeout_s <= 31536000),
  constraint task_types_ageing_check check (ageing_rate between 0 and 1000),
  constraint task_types_money_check check (
    max_cost_usd >= 0 and max_cost_usd < 'Infinity' and max_tokens >= 0
  ),
  constraint task_types_budget_check check (on_budget in ('ask', 'fail')),
  constraint task_types_report_check check (report in ('required', 'optional'))
);

comment on table treadle.task_types is
'What kinds of work exist; a task of another type is refused.';
comment on column treadle.task_types.gates is 'Keys that must be open for its tasks to start.';
comment on column treadle.task_types.breaker is
'Overrides of its breaker: threshold, first_probe_s, cooldown_s; threshold 0 is none.';
comment on column treadle.task_types.validation is
'The validators that an output has to pass, in order; a task may name others.';
comment on column treadle.task_types.report is
'required: a task is not completed without a decision report.';
comment on column treadle.task_types.models is 'Models to use, the best first.';
comment on column treadle.task_types.fallback_models is
'Models to use from the third attempt on.';

insert into treadle.task_types (name, description)
values
('code', 'Write or change code'),
('research', 'Find out and report'),
('review', 'Judge the work of others'),
('test', 'Run checks'),
('deploy', 'Put into service'),
('synthesis', 'Bring results together');

create table treadle.agents (
  id                    text not null,
  type                  text not null default 'worker',
  status                text not null default 'active',
  capabilities          text[] not null default '{}',
  models                text[] not null default '{}',
  queues                text[] not null default '{}',
  task_types            text[],
  max_concurrent_tasks  integer,
  url                   text,
  heartbeat_s           double precision not null default 30,
  claim_ttl_s           double precision not null default 60,
  meta                  jsonb not null default '{}',
  silent                boolean not null default false,
  heartbeat_at          timestamptz not null default clock_timestamp(),
  registered_at         timestamptz not null default clock_timestamp(),
  constraint agents_pkey primary key (id),
  constraint agents_id_check check (octet_length(id) between 1 and 200),
  constraint agents_status_check check (status in ('active', 'draining', 'offline')),
  constraint agents_limit_check check (max_concurrent_tasks >= 0),
  constraint agents_heartbeat_check check (heartbeat_s > 0 and heartbeat_s <= 86400),
  constraint agents_claim_ttl_check check (claim_ttl_s > 0 and claim_ttl_s <= 86400)
)
with (fillfactor = 70);

comment on table treadle.agents is
'Who works: registered workers, what they can do, whether they live.';
comment on column treadle.agents.task_types is 'Types it has handlers for; empty means any.';
comment on column treadle.agents.silent is
'Set offline by the reaper for want of heartbeats; the next heartbeat brings it back.';

create table treadle.lanes (
  id            integer not null generated always as identity,
  queue         text not null,
  type          text not null,
  capabilities  text[] not null default '{}',
  agent_id      text,
  ageing        bigint not null default 0,
  urgency       bigint not null default 0,
  created_at    timestamptz not null default clock_timestamp(),
  gates         text[] not null default '{}',
  project_id    uuid,
  constraint lanes_pkey primary key (id),
  constraint lanes_queue_fkey foreign key (queue) references treadle.queues (name),
  constraint lanes_type_fkey foreign key (type) references treadle.task_types (name),
  constraint lanes_identity_key unique nulls not distinct (
    queue, type, capabilities, agent_id, ageing, urgency, gates, project_id
  )
);

comment on table treadle.lanes is
'Interned: all that an agent''s right to a task depends on, and the rate at which it ages.';
comment on column treadle.lanes.capabilities is 'What an agent needs; sorted, without repeats.';
comment on column treadle.lanes.ageing is
'Millionths of a priority point gained each minute, those of a near deadline included.';
comment on column treadle.lanes.urgency is 'What of ageing comes from a deadline that is near.';
comment on column treadle.lanes.gates is 'Keys of the gates before it, that of its type included.';
comment on column treadle.lanes.project_id is 'Whose tasks these are, in a queue that is fair.';
