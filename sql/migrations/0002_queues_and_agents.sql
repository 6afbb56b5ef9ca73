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
    char_length(name) between 1 and case when label is null then 200 else 210 end
  ),
  constraint projects_label_check check (char_length(label) between 1 and 200),
  constraint projects_share_check check (share > 0 and share <= 1000000)
);

comment on table treadle.projects is 'Owners of tasks and DAGs, for fair shares and budgets.';
comment on column treadle.projects.label is
'Name in the work API, where another project already has that name.';
comment on column treadle.projects.share is
'Weight in a fair queue, relative to the other projects that wait there.';

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
  assignment        text not null default 'claim',
  hold              boolean not null default false,
  on_lease_expiry   text not null default 'fail',
  keep_changes      boolean not null default false,
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
  constraint queues_assignment_check check (assignment in ('claim', 'manual', 'dispatch')),
  constraint queues_lease_expiry_check check (on_lease_expiry in ('fail', 'block')),
  -- Only the dispatcher of such a queue can release its tasks and continue blocked ones, and only
  -- its changes have notes for the log.
  constraint queues_manual_check check (
    case when assignment = 'manual' then hold else on_lease_expiry = 'fail' and not keep_changes end
  ),
  constraint queues_keep_check check (
    least(keep_completed_s, keep_cancelled_s, keep_dead_s) >= 0
    and greatest(keep_completed_s, keep_cancelled_s, keep_dead_s) <= 3153600000
  ),
  constraint queues_prune_check check (prune_mode in ('archive', 'drop'))
);

comment on table treadle.queues is 'Queues that tasks wait in, with defaults for their tasks.';
comment on column treadle.queues.ageing_rate is
'Priority points that a waiting task gains each minute.';
comment on column treadle.queues.retry is
'Retry policy; those of the type and the task take precedence. See treadle.retry_policy.';
comment on column treadle.queues.max_depth is
'Maximum number of waiting tasks; more are rejected. Null: no limit.';
comment on column treadle.queues.fair is 'Whether projects take turns, weighted by their shares.';
comment on column treadle.queues.audit is
'compact: write events for important transitions only; full: for every transition.';
comment on column treadle.queues.assignment is
'claim: agents claim tasks; manual: a dispatcher assigns each task to an agent, and no claim takes '
'it; dispatch: the dispatcher service claims tasks for registered agents and sends them.';
comment on column treadle.queues.hold is 'New tasks stay created until they are released.';
comment on column treadle.queues.on_lease_expiry is
'fail: an expired claim is a failed attempt; block: its task is blocked, with a note.';
comment on column treadle.queues.keep_changes is 'Changes of state are appended to work_log.';
comment on column treadle.queues.keep_completed_s is
'Seconds after which completed tasks are pruned; null: never.';
comment on column treadle.queues.keep_cancelled_s is
'Seconds after which cancelled tasks are pruned; null: never.';
comment on column treadle.queues.keep_dead_s is
'Seconds after which dead letters without a decision are pruned; null: never.';
comment on column treadle.queues.prune_mode is
'archive: move pruned tasks to task_history; drop: delete them.';

insert into treadle.queues (name) values ('default');

-- A hint that may be lost: the table is empty after a crash, and idle workers write it again within
-- seconds.
create unlogged table treadle.idle_queues (
  queue       text not null,
  idle_until  timestamptz not null,
  constraint idle_queues_pkey primary key (queue)
)
with (fillfactor = 50);

comment on table treadle.idle_queues is 'Queues on which a worker waits for a notification.';

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
  output_type      text,
  models           text[],
  fallback_models  text[],
  declared         text[] not null default '{}',
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
'Known types of tasks; a task of an unknown type is rejected.';
comment on column treadle.task_types.gates is 'Gates that must be open for its tasks to start.';
comment on column treadle.task_types.breaker is
'Overrides for its circuit breaker: threshold, first_probe_s, cooldown_s. Threshold 0 turns it '
'off.';
comment on column treadle.task_types.validation is
'Validators that an output has to pass, in order; a task may override them.';
comment on column treadle.task_types.report is
'required: a task cannot be completed without a decision report.';
comment on column treadle.task_types.output_type is
'Kind of the outputs: code, markdown, json or artifact.';
comment on column treadle.task_types.models is 'Models to use, best first.';
comment on column treadle.task_types.fallback_models is 'Models to use from the third attempt on.';
comment on column treadle.task_types.declared is
'Settings that code declared last; one that it no longer declares returns to its default.';

insert into treadle.task_types (name, description)
values
('code', 'Write or change code'),
('research', 'Research a question and report'),
('review', 'Review the work of other agents'),
('test', 'Run tests'),
('deploy', 'Deploy a release'),
('synthesis', 'Combine results');

create table treadle.agents (
  id                    text not null,
  type                  text not null default 'worker',
  status                text not null default 'active',
  capabilities          text[] not null default '{}',
  models                text[] not null default '{}',
  queues                text[] not null default '{}',
  assigned_only         text[] not null default '{}',
  task_types            text[],
  max_concurrent_tasks  integer,
  url                   text,
  heartbeat_s           double precision not null default 30,
  claim_ttl_s           double precision not null default 60,
  meta                  jsonb not null default '{}',
  silent                boolean not null default false,
  claims_ahead          boolean not null default false,
  heartbeat_at          timestamptz not null default clock_timestamp(),
  registered_at         timestamptz not null default clock_timestamp(),
  constraint agents_pkey primary key (id),
  constraint agents_id_check check (char_length(id) between 1 and 200),
  constraint agents_status_check check (status in ('active', 'draining', 'offline')),
  constraint agents_limit_check check (max_concurrent_tasks >= 0),
  constraint agents_heartbeat_check check (heartbeat_s > 0 and heartbeat_s <= 86400),
  constraint agents_claim_ttl_check check (claim_ttl_s > 0 and claim_ttl_s <= 86400)
)
with (fillfactor = 70);

comment on table treadle.agents is
'Registered agents: what they can do and whether they are alive.';
comment on column treadle.agents.assigned_only is
'Queues in which the agent takes only tasks that are assigned to it.';
comment on column treadle.agents.task_types is 'Types that it has handlers for; null: any.';
comment on column treadle.agents.claims_ahead is
'It claims more tasks than it runs, and keeps max_concurrent_tasks itself.';
comment on column treadle.agents.silent is
'Set offline by the reaper because its heartbeats stopped; the next heartbeat undoes it.';

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
'Interned combinations of everything that decides which agents may claim a task, and of its '
'ageing rate.';
comment on column treadle.lanes.capabilities is
'Capabilities that an agent needs; sorted, without duplicates.';
comment on column treadle.lanes.ageing is
'Millionths of a priority point gained each minute, including those of a near deadline.';
comment on column treadle.lanes.urgency is 'The part of ageing that comes from a near deadline.';
comment on column treadle.lanes.gates is
'Gates that its tasks must pass, including that of its type.';
comment on column treadle.lanes.project_id is 'Project of its tasks, in a fair queue.';
