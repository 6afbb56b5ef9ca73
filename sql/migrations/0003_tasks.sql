-- 0003_tasks: the task table, its states and the indexes of the claim path.
--
-- Fixed-width columns first, then short text, then json: the row stays narrow. Every index but the
-- key is partial, and none holds a column that a heartbeat writes. No foreign key leaves or enters
-- the table: each would lock another row on every insert, and lanes are never deleted. Names that
-- are indexed compare by byte.

create table treadle.tasks (
  id               uuid not null default treadle.uuidv7(),
  rank             bigint not null,
  created_at       timestamptz not null default clock_timestamp(),
  claimed_at       timestamptz,
  lease_until      timestamptz,
  started_at       timestamptz,
  heartbeat_at     timestamptz,
  completed_at     timestamptz,
  run_at           timestamptz,
  retry_at         timestamptz,
  deadline_at      timestamptz,
  consumed_at      timestamptz,
  timeout_s        double precision,
  claim_token      uuid,
  last_token       uuid,
  consumed_token   uuid,
  parent_id        uuid,
  dag_id           uuid,
  project_id       uuid,
  input_tokens     bigint not null default 0,
  output_tokens    bigint not null default 0,
  lane_id          integer not null,
  blocked_count    integer not null default 0,
  priority         smallint not null default 50,
  attempt          smallint not null default 0,
  max_attempts     smallint not null default 3,
  rate_limits      smallint not null default 0,
  cost_usd         numeric(14, 6) not null default 0,
  max_cost_usd     numeric(14, 6),
  ageing_rate      numeric(10, 6),
  status           text not null default 'ready',
  queue            text not null default 'default',
  type             text not null,
  agent_id         text collate "C",
  completed_by     text,
  outcome          text,
  failure_class    text,
  failure_reason   text,
  idempotency_key  text collate "C",
  consumer         text collate "C",
  assigned_agent   text,
  capabilities     text[],
  tags             text[],
  title            text,
  created_by       text,
  source           text,
  source_job       text,
  external_ref     text,
  notes            text,
  output_ref       text,
  retry            jsonb,
  validation       jsonb,
  artifacts        jsonb,
  progress         jsonb,
  decision_report  jsonb,
  spec             jsonb not null default '{}',
  output           jsonb,
  constraint tasks_pkey primary key (id),
  constraint tasks_status_check check (
    status in (
      'created', 'pending', 'ready', 'claimed', 'running', 'validating',
      'blocked', 'retrying', 'completed', 'dead_lettered', 'cancelled'
    )
  ),
  -- A claim is whole or absent: the reaper relies on it.
  constraint tasks_claim_check check (
    num_nonnulls(agent_id, claim_token, lease_until)
    = case when status in ('claimed', 'running', 'validating') then 3 else 0 end
  ),
  constraint tasks_end_check check (
    (completed_at is not null) = (status in ('completed', 'dead_lettered', 'cancelled'))
  ),
  constraint tasks_retry_check check ((retry_at is not null) = (status = 'retrying')),
  constraint tasks_priority_check check (priority between 0 and 100),
  constraint tasks_attempt_check check (attempt >= 0 and max_attempts >= 1),
  constraint tasks_times_check check (
    isfinite(created_at)
    and (run_at is null or isfinite(run_at))
    and (deadline_at is null or isfinite(deadline_at))
  ),
  constraint tasks_timeout_check check (timeout_s > 0 and timeout_s <= 31536000),
  constraint tasks_key_check check (octet_length(idempotency_key) between 1 and 200),
  constraint tasks_money_check check (max_cost_usd >= 0 and cost_usd >= 0)
)
with (
  fillfactor = 80,
  toast_tuple_target = 512,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0
);

comment on table treadle.tasks is 'One row per unit of work; the row is the truth about its state.';
comment on column treadle.tasks.claim_token is 'The fence: fresh and random on every claim.';
comment on column treadle.tasks.last_token is
'Token of the claim that ended last: its answer may be repeated, or come late.';
comment on column treadle.tasks.rank is
'Order inside a lane, in millionths of a priority point; lower is sooner.';
comment on column treadle.tasks.lease_until is 'The reaper takes the task back after this.';
comment on column treadle.tasks.run_at is 'Not before; empty means at once.';
comment on column treadle.tasks.priority is '0 (critical) to 100 (background).';
comment on column treadle.tasks.attempt is 'Claims so far that count; never goes back once ended.';
comment on column treadle.tasks.rate_limits is 'Attempts given back because of a rate limit.';
comment on column treadle.tasks.consumer is 'Who takes the result with take_results.';
comment on column treadle.tasks.completed_at is 'When it ended, in whichever way.';
comment on column treadle.tasks.outcome is 'How it ended, in a word.';
comment on column treadle.tasks.blocked_count is 'Dependencies that are not done yet.';

-- Same column order as the `order by` of claim_tasks.
create index tasks_ready_idx on treadle.tasks (lane_id, rank, id)
where status = 'ready';

create index tasks_claims_idx on treadle.tasks (agent_id, claim_token)
where status in ('claimed', 'running', 'validating');

create index tasks_retry_idx on treadle.tasks (retry_at)
where status = 'retrying';

create index tasks_run_at_idx on treadle.tasks (run_at)
where status = 'pending' and blocked_count = 0 and run_at is not null;

-- A key names one task until that one is dead-lettered or cancelled.
create unique index tasks_key_idx on treadle.tasks (idempotency_key, project_id) nulls not distinct
where idempotency_key is not null and status not in ('dead_lettered', 'cancelled');

create index tasks_results_idx on treadle.tasks (consumer, consumed_token, completed_at)
where consumer is not null and status = 'completed';

-- For rates over the last minutes; a block range index costs the completion next to nothing.
create index tasks_completed_idx on treadle.tasks using brin (completed_at)
with (pages_per_range = 32, autosummarize = on)
where completed_at is not null;

create table treadle.dependencies (
  task_id     uuid not null,
  depends_on  uuid not null,
  created_at  timestamptz not null default clock_timestamp(),
  constraint dependencies_pkey primary key (depends_on, task_id),
  constraint dependencies_self_check check (task_id <> depends_on)
);

comment on table treadle.dependencies is 'task_id waits for depends_on.';

create index dependencies_task_idx on treadle.dependencies (task_id);
