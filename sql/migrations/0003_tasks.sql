-- 0003_tasks: the task table, its states, and the indexes that claims and services use.
--
-- Fixed-width columns come first, then short text, then json, so that the row has no padding and
-- its state is read without passing the documents. Every index but the key is partial, and none
-- contains a column that a heartbeat writes. No foreign key leaves or enters the table: each would
-- lock another row on every insert, and lanes are never deleted. Names that are indexed compare by
-- byte.

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
  delayed_at       timestamptz,
  deadline_at      timestamptz,
  rerank_at        timestamptz,
  timeout_s        double precision,
  claim_token      uuid,
  last_token       uuid,
  parent_id        uuid,
  dag_id           uuid,
  project_id       uuid,
  budget_id        bigint,
  lane_id          integer not null,
  blocked_count    integer not null default 0,
  priority         smallint not null default 50,
  attempt          smallint not null default 0,
  max_attempts     smallint not null default 3,
  earlier_attempts smallint not null default 0,
  rate_limits      smallint not null default 0,
  critical_path    smallint not null default 0,
  durable          boolean not null default false,
  budgeted         boolean not null default false,
  capped           boolean not null default false,
  has_options      boolean not null default false,
  cost_usd         numeric(14, 6) not null default 0,
  max_cost_usd     numeric(14, 6),
  status           text not null default 'ready',
  queue            text not null default 'default',
  type             text not null,
  slot             text,
  concurrency_key  text collate "C",
  agent_id         text collate "C",
  completed_by     text,
  failure_class    text,
  failure_reason   text,
  idempotency_key  text collate "C",
  assigned_agent   text,
  tags             text[],
  name             text collate "C",
  title            text,
  created_by       text,
  inputs           jsonb,
  progress         jsonb,
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
  constraint tasks_blocked_check check (blocked_count >= 0),
  -- A task that can be claimed has no unmet dependencies.
  constraint tasks_open_check check (blocked_count = 0 or status not in ('ready', 'retrying')),
  -- A transition that does not handle slots fails here instead of exceeding the limit of its key.
  -- Kept short, because every statement that writes tasks parses it again.
  constraint tasks_slot_check check (
    concurrency_key is null
    or (coalesce(slot, '') = 'held') = (status in ('ready', 'claimed', 'running', 'validating'))
  ),
  constraint tasks_priority_check check (priority between 0 and 100),
  constraint tasks_attempt_check check (attempt >= 0 and max_attempts >= 1),
  -- Every client can read times between these two.
  constraint tasks_times_check check (
    isfinite(created_at)
    and (run_at is null or run_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00')
    and (deadline_at is null or deadline_at between '1970-01-01 00:00+00' and '9999-12-31 00:00+00')
  ),
  constraint tasks_timeout_check check (timeout_s > 0 and timeout_s <= 31536000),
  constraint tasks_key_check check (char_length(idempotency_key) between 1 and 200),
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

comment on table treadle.tasks is 'One row per task: the authoritative record of its state.';
comment on column treadle.tasks.rank is
'Order inside a lane, in millionths of a priority point; lower goes first.';
comment on column treadle.tasks.lease_until is 'Time after which the reaper ends the claim.';
comment on column treadle.tasks.completed_at is 'When the task ended, whatever the outcome.';
comment on column treadle.tasks.run_at is 'Earliest time to run; null: immediately.';
comment on column treadle.tasks.delayed_at is
'Start of the delay that ends at retry_at or run_at; null where a caller set the time.';
comment on column treadle.tasks.rerank_at is 'When its deadline changes its rank next.';
comment on column treadle.tasks.claim_token is 'Fencing token: new and random on every claim.';
comment on column treadle.tasks.last_token is
'Token of the last claim that ended: its result may be repeated, or arrive late.';
comment on column treadle.tasks.budget_id is 'The budget that it waits for.';
comment on column treadle.tasks.blocked_count is 'Number of unmet dependencies.';
comment on column treadle.tasks.priority is '0 (critical) to 100 (background).';
comment on column treadle.tasks.attempt is
'Attempts so far; claims that were released, suspended or rate limited do not count.';
comment on column treadle.tasks.max_attempts is
'Number of attempts after which it is dead-lettered, those of earlier rounds included.';
comment on column treadle.tasks.earlier_attempts is
'Attempts before the last restart by a person; without them max_attempts is what it was given.';
comment on column treadle.tasks.rate_limits is
'Attempts that did not count because of a rate limit.';
comment on column treadle.tasks.critical_path is
'Length of the longest chain of tasks that depend on it, up to 30.';
comment on column treadle.tasks.durable is
'Whether it has steps or waits, to be read at the next claim.';
comment on column treadle.tasks.budgeted is 'Whether its last claim reserved money in a budget.';
comment on column treadle.tasks.capped is
'Whether it counts towards the depth of its queue while it waits.';
comment on column treadle.tasks.has_options is 'Whether it has a row in task_options.';
comment on column treadle.tasks.slot is 'State of its concurrency slot: waiting or held.';
comment on column treadle.tasks.name is 'Name in its DAG.';
comment on column treadle.tasks.inputs is
'Arguments taken from outputs of other tasks, filled in at the claim: {"brief": '
'"task:<id>:output"}.';

-- Same column order as the `order by` of claim_tasks.
create index tasks_ready_idx on treadle.tasks (lane_id, rank, id)
where status = 'ready';

create index tasks_claims_idx on treadle.tasks (agent_id, claim_token)
where status in ('claimed', 'running', 'validating');

create index tasks_retry_idx on treadle.tasks (retry_at)
where status = 'retrying';

-- A task that waits for a slot or for its budget has passed its run_at already.
create index tasks_run_at_idx on treadle.tasks (run_at)
where
status = 'pending' and blocked_count = 0 and run_at is not null and slot is null
and budget_id is null;

-- Finds delays that were computed with a wrong clock.
create index tasks_delayed_idx on treadle.tasks (delayed_at)
where status in ('pending', 'retrying') and delayed_at is not null;

create index tasks_rerank_idx on treadle.tasks (rerank_at)
where rerank_at is not null and status in ('created', 'pending', 'ready', 'retrying', 'blocked');

create index tasks_depth_idx on treadle.tasks (queue)
where capped and status in ('created', 'pending', 'ready', 'retrying', 'blocked');

create index tasks_slot_idx on treadle.tasks (concurrency_key, slot, lane_id, rank, id)
where slot is not null;

create index tasks_parked_idx on treadle.tasks (budget_id, rank)
where budget_id is not null;

-- A key names one task until that one is dead-lettered or cancelled.
create unique index tasks_key_idx on treadle.tasks (idempotency_key, project_id) nulls not distinct
where idempotency_key is not null and status not in ('dead_lettered', 'cancelled');

-- For rates over the last minutes; a block range index adds almost nothing to a completion.
create index tasks_completed_idx on treadle.tasks using brin (completed_at)
with (pages_per_range = 32, autosummarize = on)
where completed_at is not null;

create unique index tasks_dag_idx on treadle.tasks (dag_id, name)
where dag_id is not null;

create index tasks_parent_idx on treadle.tasks (parent_id)
where parent_id is not null;

-- Tasks that may refer to another task by their inputs alone, without a dependency on it: forks,
-- which are in no DAG, and readers of artifacts. The pruner keeps the tasks that they need.
create index tasks_references_idx on treadle.tasks (id)
where
inputs is not null and status not in ('completed', 'cancelled')
and (dag_id is null or inputs::text like '%artifact:%');

-- Work items are the tasks of queue `work`. An agent has at most one of them in progress.
create unique index tasks_work_agent_idx on treadle.tasks (agent_id)
where queue = 'work' and status in ('claimed', 'running', 'validating');

create index tasks_work_idx on treadle.tasks (status, created_at, id)
where queue = 'work';

-- Each request of the push API lists and counts its few entries among many other tasks, in the
-- order in which they are claimed.
create index tasks_push_idx on treadle.tasks (rank, id)
where queue = 'push' and completed_at is null;

-- Options that few tasks have. A claim or a completion looks here only where tasks.has_options
-- says so. The columns are options of the same names, read and copied by the type of the row: a
-- new one needs a column here and a line in src/treadle/fields.py. The pruner deletes the row
-- with its task.
create table treadle.task_options (
  task_id          uuid not null,
  forked_from      uuid,
  max_tokens       bigint,
  ageing_rate      numeric(10, 6),
  on_budget        text,
  report           text,
  output_type      text,
  consumer         text,
  source           text,
  source_job       text,
  external_ref     text,
  notes            text,
  capabilities     text[],
  gates            text[],
  models           text[],
  fallback_models  text[],
  retry            jsonb,
  validation       jsonb,
  constraint task_options_pkey primary key (task_id)
);

comment on table treadle.task_options is
'Options that few tasks have; tasks.has_options says which. Null: as for its type or queue.';
comment on column treadle.task_options.forked_from is 'The task whose first steps were copied.';
comment on column treadle.task_options.report is 'required or optional; null: as for its type.';
comment on column treadle.task_options.output_type is
'Kind of the output: code, markdown, json or artifact.';
comment on column treadle.task_options.consumer is
'Name of the consumer that takes the result with take_results.';
comment on column treadle.task_options.gates is 'Gates that must be open for it to start.';
comment on column treadle.task_options.validation is
'Its own validators; null: those of its type.';

create index task_options_forks_idx on treadle.task_options (forked_from)
where forked_from is not null;

-- Written at the completion, and only where there is something to write. The pruner deletes the row
-- with its task.
create table treadle.results (
  task_id          uuid not null,
  completed_at     timestamptz not null,
  consumed_at      timestamptz,
  consumed_token   uuid,
  consumer         text collate "C",
  decision_report  jsonb,
  constraint results_pkey primary key (task_id)
);

comment on table treadle.results is
'Completed tasks whose result a consumer takes, or that came with a decision report.';
comment on column treadle.results.decision_report is
'What was decided and why, as reported by the agent that completed the task.';

create index results_consumer_idx on treadle.results (consumer, consumed_token, completed_at)
where consumer is not null;

-- What a new task of a DAG has besides its options: unmet dependencies, and the length of the
-- longest chain of tasks that depend on it.
create type treadle.dag_node as (
  name    text,
  title   text,
  inputs  jsonb,
  unmet   integer,
  path    integer
);

-- The decision about one of many tasks in a bulk operation.
create type treadle.bulk_task as (
  id       uuid,
  queue    text,
  type     text,
  status   text,
  verdict  text,
  why      text
);
