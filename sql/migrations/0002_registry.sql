-- 0002_registry: what tasks refer to: queues, types, agents, and the lanes interned from them.

create table treadle.queues (
  name           text not null,
  priority       smallint,
  max_attempts   smallint,
  timeout_s      double precision,
  ageing_rate    numeric(10, 6),
  retry          jsonb not null default '{}',
  max_spec_bytes integer not null default 1048576,
  audit          text not null default 'compact',
  paused_at      timestamptz,
  paused_by      text,
  paused_reason  text,
  created_at     timestamptz not null default clock_timestamp(),
  constraint queues_pkey primary key (name),
  -- The channel is `task_ready.` and the name, and a channel has at most 63 bytes.
  constraint queues_name_check check (name ~ '^[a-z0-9_.-]{1,48}$'),
  constraint queues_priority_check check (priority between 0 and 100),
  constraint queues_max_attempts_check check (max_attempts between 1 and 1000),
  constraint queues_timeout_check check (timeout_s > 0 and timeout_s <= 31536000),
  constraint queues_ageing_check check (ageing_rate between 0 and 1000),
  constraint queues_spec_bytes_check check (max_spec_bytes between 1 and 268435456),
  constraint queues_audit_check check (audit in ('compact', 'full'))
);

comment on table treadle.queues is 'Where tasks wait; defaults for those that do not say.';
comment on column treadle.queues.ageing_rate is
'Priority points that a waiting task gains each minute.';
comment on column treadle.queues.audit is
'compact: what matters is an event; full: every transition is.';
comment on column treadle.queues.retry is
'Retry policy below the type''s and the task''s; see treadle.retry_policy.';

insert into treadle.queues (name) values ('default');

create table treadle.task_types (
  name          text not null,
  description   text,
  priority      smallint,
  max_attempts  smallint,
  timeout_s     double precision,
  ageing_rate   numeric(10, 6),
  retry         jsonb not null default '{}',
  created_at    timestamptz not null default clock_timestamp(),
  constraint task_types_pkey primary key (name),
  constraint task_types_name_check check (name ~ '^[A-Za-z0-9_.:/-]{1,100}$'),
  constraint task_types_priority_check check (priority between 0 and 100),
  constraint task_types_max_attempts_check check (max_attempts between 1 and 1000),
  constraint task_types_timeout_check check (timeout_s > 0 and timeout_s <= 31536000),
  constraint task_types_ageing_check check (ageing_rate between 0 and 1000)
);

comment on table treadle.task_types is
'What kinds of work exist; a task of another type is refused.';

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
  budget_usd            numeric(14, 6),
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
  constraint agents_budget_check check (budget_usd >= 0),
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
  created_at    timestamptz not null default clock_timestamp(),
  constraint lanes_pkey primary key (id),
  constraint lanes_queue_fkey foreign key (queue) references treadle.queues (name),
  constraint lanes_type_fkey foreign key (type) references treadle.task_types (name),
  constraint lanes_identity_key unique nulls not distinct (
    queue, type, capabilities, agent_id, ageing
  )
);

comment on table treadle.lanes is
'Interned: all that an agent''s right to a task depends on, and the rate at which it ages.';
comment on column treadle.lanes.ageing is 'Millionths of a priority point per minute.';
comment on column treadle.lanes.capabilities is 'What an agent needs; sorted, without repeats.';

-- A hint, not a truth: after a crash it is empty, and idle workers say so again within seconds.
create unlogged table treadle.idle_queues (
  queue       text not null,
  idle_until  timestamptz not null,
  constraint idle_queues_pkey primary key (queue)
)
with (fillfactor = 50);

comment on table treadle.idle_queues is 'Queues on which a worker waits to be woken.';
