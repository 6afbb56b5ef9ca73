-- 0007_limits_and_budgets: concurrency keys, gates, breakers, budgets and the ledger of costs.

create table treadle.concurrency_keys (
  key      text not null collate "C",
  max      integer not null default 1,
  touched  bigint not null default 0,
  constraint concurrency_keys_pkey primary key (key),
  constraint concurrency_keys_key_check check (char_length(key) between 1 and 200),
  constraint concurrency_keys_max_check check (max between 0 and 1000000)
)
with (fillfactor = 50);

comment on table treadle.concurrency_keys is
'How many tasks of a key may run at once; a key without a row has one slot.';
comment on column treadle.concurrency_keys.touched is
'Updated by each transaction that assigns slots, so that two cannot do it at once.';

-- A transaction that frees a slot or money adds a row here and locks nothing. The next claim reads
-- the rows and admits the tasks that fit.
create table treadle.admissions (
  id    bigint not null generated always as identity,
  kind  text not null,
  key   text not null collate "C",
  max   integer,
  at    timestamptz not null default clock_timestamp(),
  constraint admissions_pkey primary key (id),
  constraint admissions_kind_check check (kind in ('slot', 'budget')),
  constraint admissions_max_check check (max between 1 and 1000000)
);

create index admissions_key_idx on treadle.admissions (kind, key, id);

comment on table treadle.admissions is
'Concurrency keys and budgets that may have room for a waiting task.';
comment on column treadle.admissions.max is
'New limit of the key, as requested by the caller that enqueued.';

create table treadle.gates (
  key           text not null collate "C",
  unit          text,
  amount        numeric(20, 6),
  period_s      double precision,
  closed_until  timestamptz,
  closed_at     timestamptz,
  closed_by     text,
  reason        text,
  slowed_until  timestamptz,
  slowdowns     integer not null default 0,
  touched       bigint not null default 0,
  created_at    timestamptz not null default clock_timestamp(),
  constraint gates_pkey primary key (key),
  constraint gates_key_check check (key ~ '^[A-Za-z0-9_.:/-]{1,150}$'),
  constraint gates_unit_check check (unit in ('starts', 'tokens', 'usd')),
  constraint gates_limit_check check (num_nonnulls(unit, amount, period_s) in (0, 3)),
  constraint gates_amount_check check (amount > 0 and amount < 'Infinity'),
  constraint gates_period_check check (period_s between 0.1 and 2678400),
  constraint gates_closed_check check (isfinite(closed_until))
)
with (fillfactor = 50);

comment on table treadle.gates is
'Conditions for tasks to start: closed for a while after a rate limit, or limited by rate.';
comment on column treadle.gates.slowdowns is
'Number of consecutive times that a rate limit closed it.';
comment on column treadle.gates.slowed_until is
'End of its last closing by a rate limit; further rate limits before then are ignored.';
comment on column treadle.gates.touched is
'Updated by each transaction that counts its use, so that nothing is counted twice.';

create table treadle.gate_uses (
  key     text not null collate "C",
  slot    bigint not null,
  amount  numeric(20, 6) not null,
  constraint gate_uses_pkey primary key (key, slot)
)
with (fillfactor = 50);

comment on table treadle.gate_uses is
'Use of gates that are limited by rate, in buckets of a sixtieth of the period.';

create table treadle.breakers (
  type             text not null,
  state            text not null default 'closed',
  failures         integer not null default 0,
  last_failure_at  timestamptz,
  last_error       text,
  lost_agent       text,
  opened_at        timestamptz,
  opened_by        text,
  probe_at         timestamptz,
  probe_task       uuid,
  probe_token      uuid,
  constraint breakers_pkey primary key (type),
  constraint breakers_state_check check (state in ('closed', 'open', 'half_open')),
  constraint breakers_open_check check ((state = 'closed') = (probe_at is null))
)
with (fillfactor = 50);

comment on table treadle.breakers is
'Circuit breakers of task types: an open one stops claims until its probe is due.';
comment on column treadle.breakers.lost_agent is
'The last agent whose loss was counted: all of its tasks count as one failure.';
comment on column treadle.breakers.probe_at is 'When one task may be tried.';

create table treadle.budgets (
  id            bigint not null generated always as identity,
  scope         text not null,
  scope_key     text not null collate "C" default '',
  period        text,
  limit_usd     numeric(14, 6) not null,
  spent_usd     numeric(14, 6) not null default 0,
  reserved_usd  numeric(14, 6) not null default 0,
  period_start  timestamptz,
  on_exhausted  text not null default 'ask',
  warned_at     timestamptz,
  created_by    text not null default session_user,
  created_at    timestamptz not null default clock_timestamp(),
  constraint budgets_pkey primary key (id),
  constraint budgets_scope_key unique nulls not distinct (scope, scope_key, period),
  constraint budgets_scope_check check (scope in ('agent', 'dag', 'project', 'type', 'all')),
  constraint budgets_all_check check ((scope = 'all') = (scope_key = '')),
  constraint budgets_period_check check (period in ('hour', 'day', 'week', 'month')),
  constraint budgets_start_check check ((period is null) = (period_start is null)),
  constraint budgets_money_check check (
    limit_usd >= 0 and limit_usd < 'Infinity' and spent_usd >= 0 and reserved_usd >= 0
  ),
  constraint budgets_policy_check check (on_exhausted in ('ask', 'fail'))
)
with (fillfactor = 50);

comment on table treadle.budgets is
'Dollar limits of an agent, a DAG, a project, a type or everything, in total or per period.';
comment on column treadle.budgets.reserved_usd is
'What claimed tasks may still spend: the sum of its reservations.';

create table treadle.reservations (
  task_id    uuid not null,
  budget_id  bigint not null,
  usd        numeric(14, 6) not null,
  constraint reservations_pkey primary key (task_id, budget_id),
  constraint reservations_usd_check check (usd >= 0)
)
with (fillfactor = 50);

comment on table treadle.reservations is 'What a claimed task may still spend of a budget.';

create table treadle.spend (
  task_id        uuid not null,
  call_id        text not null collate "C",
  dag_id         uuid,
  project_id     uuid,
  agent_id       text,
  type           text not null,
  attempt        smallint not null,
  step           text,
  model          text,
  usd            numeric(14, 6) not null default 0,
  input_tokens   bigint not null default 0,
  output_tokens  bigint not null default 0,
  at             timestamptz not null default clock_timestamp(),
  constraint spend_pkey primary key (task_id, call_id),
  constraint spend_call_check check (octet_length(call_id) between 1 and 200),
  constraint spend_usd_check check (usd >= 0 and usd < 'Infinity'),
  constraint spend_tokens_check check (least(input_tokens, output_tokens) >= 0)
);

comment on table treadle.spend is 'Ledger: one row per paid call, counted once by its id.';

create index spend_at_idx on treadle.spend using brin (at) with (autosummarize = on);

-- By the hour, because no budget has a shorter period: what is summed up here counts as before.
create table treadle.spend_hours (
  hour           timestamptz not null,
  agent_id       text,
  model          text,
  type           text not null,
  project_id     uuid,
  calls          bigint not null,
  input_tokens   bigint not null,
  output_tokens  bigint not null,
  usd            numeric(20, 6) not null,
  constraint spend_hours_key unique nulls not distinct (hour, agent_id, model, type, project_id)
)
with (fillfactor = 90);

comment on table treadle.spend_hours is 'Cost of pruned tasks, summed up by hour.';
