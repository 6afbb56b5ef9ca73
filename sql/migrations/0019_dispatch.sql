-- 0019_dispatch: agents that tasks are sent to, and each submission of a task to one of them.

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
'Where agents are that tasks are sent to. Operators write it: what an agent says of itself does '
'not change where the dispatcher connects to.';

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
'One row per submission of a task to an agent: kept under a lease until its end is known.';
comment on column treadle.dispatches.number is
'Which submission of the task: with the queue id, the idempotency key that the agent sees.';
comment on column treadle.dispatches.holder is
'Who follows it now: fresh and random each time, void after lease_until.';
comment on column treadle.dispatches.sent_at is
'When it was claimed for the agent, before anything was sent.';
comment on column treadle.dispatches.heard_at is 'When the agent last answered about it.';

-- Few rows at any time: no more than there are agents, for each has one task.
create index dispatches_open_idx on treadle.dispatches (holder)
where ended_at is null;

create index dispatches_agent_idx on treadle.dispatches (agent_id, sent_at);

-- What it takes to follow a submission, and whether its claim still holds.
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
  verdict        text
);
