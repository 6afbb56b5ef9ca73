-- 0012_work_push_harness: the log of work items, dispatches to push agents, and harness actions.

-- Insert-only, see trigger work_log_100_append_only; it outlives the tasks that it is about.
create table treadle.work_log (
  id           uuid not null default treadle.uuidv7(),
  number       bigint not null generated always as identity,
  task_id      uuid not null,
  at           timestamptz not null default clock_timestamp(),
  actor        text not null default session_user,
  from_status  text,
  to_status    text not null,
  agent        text,
  handed_over  boolean not null default false,
  note         text,
  constraint work_log_pkey primary key (id),
  constraint work_log_status_check check (
    to_status in (
      'queued', 'dispatched', 'in_progress', 'blocked', 'completed', 'failed', 'cancelled'
    )
  )
);

comment on table treadle.work_log is
'Append-only: every change of a work item, in the terms of the work API.';
comment on column treadle.work_log.handed_over is
'Whether this change gave the item to the agent: dispatched, or reassigned.';
comment on column treadle.work_log.note is
'Note about the change; in the first row, a description too long for a title.';

create index work_log_task_idx on treadle.work_log (task_id, number);

create table treadle.push_agents (
  agent_id       text not null,
  url            text not null,
  allow_private  boolean not null default false,
  created_at     timestamptz not null default clock_timestamp(),
  created_by     text not null default session_user,
  constraint push_agents_pkey primary key (agent_id),
  constraint push_agents_url_check check (octet_length(url) between 1 and 2000)
);

comment on table treadle.push_agents is
'URLs of agents that tasks are sent to. Only operators change them: an agent cannot change where '
'the dispatcher connects.';

create table treadle.dispatches (
  task_id        uuid not null,
  claim_token    uuid not null,
  number         integer not null,
  attempt        smallint not null,
  agent_id       text not null,
  agent_url      text not null,
  allow_private  boolean not null default false,
  agent_task_id  text,
  session_id     text,
  holder         uuid,
  lease_until    timestamptz,
  sent_at        timestamptz not null default clock_timestamp(),
  heard_at       timestamptz not null default clock_timestamp(),
  accepted_at    timestamptz,
  ended_at       timestamptz,
  outcome        text,
  error          text,
  constraint dispatches_pkey primary key (task_id, claim_token),
  constraint dispatches_number_check check (number >= 1 and attempt >= 1),
  constraint dispatches_accepted_check check ((accepted_at is null) = (agent_task_id is null)),
  constraint dispatches_lease_check check (
    num_nonnulls(holder, lease_until) = case when ended_at is null then 2 else 0 end
  ),
  constraint dispatches_outcome_check check (
    outcome in (
      'completed', 'failed', 'cancelled', 'busy', 'refused', 'error', 'unreachable', 'unsure',
      'lost', 'silent', 'superseded'
    )
  ),
  constraint dispatches_end_check check ((ended_at is null) = (outcome is null))
)
with (fillfactor = 70);

comment on table treadle.dispatches is
'One row per submission of a task to an agent, held under a lease until its end is known.';
comment on column treadle.dispatches.number is
'Number of the submission of the task; part of the idempotency key that the agent sees.';
comment on column treadle.dispatches.holder is
'Lease of the dispatcher that follows it: new and random each time, void after lease_until.';
comment on column treadle.dispatches.sent_at is
'When it was claimed for the agent, before anything was sent.';
comment on column treadle.dispatches.heard_at is 'When the agent last responded about it.';

-- Few rows at any time: an agent has at most one open dispatch.
create index dispatches_open_idx on treadle.dispatches (holder)
where ended_at is null;

create index dispatches_agent_idx on treadle.dispatches (agent_id, sent_at);

-- What a dispatcher needs to follow a dispatch, and whether its claim is valid. `again`: the
-- agent was sent the same before and may have it.
create type treadle.dispatch_target as (
  task_id        uuid,
  claim_token    uuid,
  number         integer,
  attempt        smallint,
  max_attempts   smallint,
  agent_id       text,
  agent_url      text,
  allow_private  boolean,
  agent_task_id  text,
  spec           jsonb,
  verdict        text,
  again          boolean
);

create table treadle.harness_agents (
  agent_url      text not null,
  allowed        boolean not null default true,
  allow_private  boolean not null default false,
  nudged_at      timestamptz,
  nudge_error    text,
  created_at     timestamptz not null default clock_timestamp(),
  created_by     text not null default session_user,
  constraint harness_agents_pkey primary key (agent_url),
  constraint harness_agents_url_check check (octet_length(agent_url) between 1 and 200)
);

comment on table treadle.harness_agents is
'URLs of agents that the harness may or may not nudge. Only operators change them: an agent or a '
'task cannot change where the harness connects.';
comment on column treadle.harness_agents.allowed is
'False if an operator forbids nudges, also to an agent on the host of a loopback server.';

create table treadle.harness_nudges (
  task_id    uuid not null,
  attempt    smallint not null,
  nudged_at  timestamptz not null default clock_timestamp(),
  constraint harness_nudges_pkey primary key (task_id)
);

comment on table treadle.harness_nudges is
'The last nudge about each task: one each time that it becomes pending.';

create table treadle.harness_actions (
  task_id      uuid not null,
  status       text not null default 'executing',
  tries        integer not null default 1,
  redeliver    boolean not null default false,
  token        uuid not null,
  lease_until  timestamptz,
  next_try_at  timestamptz,
  started_at   timestamptz not null default clock_timestamp(),
  ended_at     timestamptz,
  error        text,
  decision     jsonb not null,
  constraint harness_actions_pkey primary key (task_id),
  constraint harness_actions_status_check check (
    status in ('executing', 'waiting', 'done', 'failed', 'interrupted', 'skipped')
  ),
  constraint harness_actions_lease_check check (
    (lease_until is not null) = (status = 'executing')
  ),
  constraint harness_actions_next_check check ((next_try_at is not null) = (status = 'waiting')),
  constraint harness_actions_end_check check (
    (ended_at is not null) = (status in ('done', 'failed', 'interrupted', 'skipped'))
  ),
  constraint harness_actions_tries_check check (tries >= 0)
)
with (fillfactor = 70);

comment on table treadle.harness_actions is
'Action log: each decision is recorded once, before the harness acts on it.';
comment on column treadle.harness_actions.redeliver is
'Whether the callback may be called again if its harness stops.';
comment on column treadle.harness_actions.token is
'Lease of the process that executes it: new and random each time. Kept, so that a report may be '
'repeated.';
comment on column treadle.harness_actions.tries is
'Number of calls of the callback since the action was taken or rerun.';

-- Actions that have not ended: few rows at any time.
create index harness_actions_open_idx on treadle.harness_actions (status)
where status in ('executing', 'waiting');
