-- 0020_harness: what the harness did with results, and which agents it may nudge.

create table treadle.harness_agents (
  agent_url      text not null,
  allow_private  boolean not null default false,
  nudged_at      timestamptz,
  nudge_error    text,
  created_at     timestamptz not null default clock_timestamp(),
  created_by     text not null default session_user,
  constraint harness_agents_pkey primary key (agent_url),
  constraint harness_agents_url_check check (octet_length(agent_url) between 1 and 200)
);

comment on table treadle.harness_agents is
'Agents that are nudged. Operators write it: what an agent or a task says does not change where '
'the harness connects to.';

create table treadle.harness_nudges (
  task_id    uuid not null,
  attempt    smallint not null,
  nudged_at  timestamptz not null default clock_timestamp(),
  constraint harness_nudges_pkey primary key (task_id)
);

comment on table treadle.harness_nudges is
'The last nudge about each task: one for every time that it became pending.';

create table treadle.harness_actions (
  task_id      uuid not null,
  status       text not null default 'executing',
  tries        integer not null default 1,
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
'The action log: a decision is here before the harness acts on it, and is here once.';
comment on column treadle.harness_actions.token is
'Who executes it: fresh and random each time. It stays, so that an ending may be repeated.';
comment on column treadle.harness_actions.tries is
'How often it was handed to the callback since it was taken, or since an operator asked again.';

-- What is not over: few rows at any time.
create index harness_actions_open_idx on treadle.harness_actions (status)
where status in ('executing', 'waiting');
