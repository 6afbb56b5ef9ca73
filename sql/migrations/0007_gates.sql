-- 0007_gates: who gets what, when: money, gates, breakers, keys, shares, deadlines.

create table treadle.projects (
  id            uuid not null default treadle.uuidv7(),
  name          text not null,
  external_ref  text,
  share         numeric(10, 3) not null default 1,
  created_at    timestamptz not null default clock_timestamp(),
  updated_at    timestamptz not null default clock_timestamp(),
  constraint projects_pkey primary key (id),
  constraint projects_name_key unique (name),
  constraint projects_name_check check (octet_length(name) between 1 and 200),
  constraint projects_share_check check (share > 0 and share <= 1000000)
);

comment on table treadle.projects is 'Whose work it is: for fair shares and budgets.';
comment on column treadle.projects.share is
'Its part of what runs in a fair queue, against the shares of the others that wait there.';

alter table treadle.queues
add column max_depth integer,
add column fair boolean not null default false,
add constraint queues_depth_check check (max_depth >= 1);

comment on column treadle.queues.max_depth is
'So many tasks may wait here; one more is refused. Empty: any number.';
comment on column treadle.queues.fair is 'Projects take turns, by their shares.';

alter table treadle.task_types
add column gates text[] not null default '{}',
add column breaker jsonb not null default '{}',
add column max_cost_usd numeric(14, 6),
add column max_tokens bigint,
add column on_budget text,
add column paused_at timestamptz,
add column paused_by text,
add column paused_reason text,
add constraint task_types_money_check check (
  max_cost_usd >= 0 and max_cost_usd < 'Infinity' and max_tokens >= 0
),
add constraint task_types_budget_check check (on_budget in ('ask', 'fail'));

comment on column treadle.task_types.gates is 'Keys that must be open for its tasks to start.';
comment on column treadle.task_types.breaker is
'Overrides of its breaker: threshold, first_probe_s, cooldown_s; threshold 0 is none.';

-- A lane is all that the right to a task depends on: the gates and the project belong to it.
alter table treadle.lanes
add column urgency bigint not null default 0,
add column gates text[] not null default '{}',
add column project_id uuid,
drop constraint lanes_identity_key,
add constraint lanes_identity_key unique nulls not distinct (
  queue, type, capabilities, agent_id, ageing, urgency, gates, project_id
);

update treadle.lanes set gates = array['type:' || lanes.type];

comment on column treadle.lanes.ageing is
'Millionths of a priority point gained each minute, those of a near deadline included.';
comment on column treadle.lanes.urgency is 'What of ageing comes from a deadline that is near.';
comment on column treadle.lanes.gates is 'Keys of the gates before it, that of its type included.';
comment on column treadle.lanes.project_id is 'Whose tasks these are, in a queue that is fair.';

alter table treadle.tasks
add column rerank_at timestamptz,
add column max_tokens bigint,
add column budget_id bigint,
add column critical_path smallint not null default 0,
add column budgeted boolean not null default false,
add column capped boolean not null default false,
add column on_budget text,
add column slot text,
add column concurrency_key text collate "C",
add column gates text[],
-- A way in or out that forgets about slots is an error, not a limit that does not hold. Short,
-- because every statement that writes tasks reads it anew.
add constraint tasks_slot_check check (
  concurrency_key is null
  or (coalesce(slot, '') = 'held') = (status in ('ready', 'claimed', 'running', 'validating'))
);

comment on column treadle.tasks.rerank_at is 'When its deadline gives it another rank.';
comment on column treadle.tasks.budget_id is 'The budget that has no room for it now.';
comment on column treadle.tasks.budgeted is 'A budget counted its last claim.';
comment on column treadle.tasks.capped is 'It counts in the depth of its queue while it waits.';
comment on column treadle.tasks.critical_path is
'Length of the longest chain of tasks that wait behind it; 30 stands for more.';
comment on column treadle.tasks.slot is 'Of its concurrency key: waiting or held.';
comment on column treadle.tasks.gates is 'Keys that must be open for it to start.';

create index tasks_slot_idx on treadle.tasks (concurrency_key, slot, lane_id, rank, id)
where slot is not null;

create index tasks_parked_idx on treadle.tasks (budget_id, rank)
where budget_id is not null;

-- The ranks of older tasks know nothing of their deadlines: the promoter looks at them.
update treadle.tasks
set rerank_at = greatest(tasks.deadline_at, '2025-01-01') - interval '70 minutes'
where
  tasks.deadline_at is not null
  and tasks.status not in ('completed', 'dead_lettered', 'cancelled');

create index tasks_rerank_idx on treadle.tasks (rerank_at)
where rerank_at is not null and status in ('created', 'pending', 'ready', 'retrying', 'blocked');

create index tasks_depth_idx on treadle.tasks (queue)
where capped and status in ('created', 'pending', 'ready', 'retrying', 'blocked');

-- What waits for a slot or for money has had its time already.
drop index treadle.tasks_run_at_idx;
create index tasks_run_at_idx on treadle.tasks (run_at)
where
status = 'pending' and blocked_count = 0 and run_at is not null and slot is null
and budget_id is null;

create table treadle.concurrency_keys (
  key      text not null collate "C",
  max      integer not null default 1,
  touched  bigint not null default 0,
  constraint concurrency_keys_pkey primary key (key),
  constraint concurrency_keys_key_check check (octet_length(key) between 1 and 200),
  constraint concurrency_keys_max_check check (max between 0 and 1000000)
)
with (fillfactor = 50);

comment on table treadle.concurrency_keys is
'How many tasks of a key may be under way at once; a key that is not here has one slot.';
comment on column treadle.concurrency_keys.touched is 'Written by who gives slots away.';

-- Who frees something says so here, and locks nothing; who claims next looks what can go on.
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
'Concurrency keys and budgets that may have room for a task that waits.';
comment on column treadle.admissions.max is 'A limit that who enqueues wants the key to have.';

-- What was decided about one of many tasks at once.
create type treadle.bulk_task as (
  id       uuid,
  queue    text,
  type     text,
  status   text,
  verdict  text,
  why      text
);

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
'What tasks have to pass to start: closed for a while after a rate limit, or limited by rate.';
comment on column treadle.gates.slowdowns is 'Times in a row that it was closed by a rate limit.';
comment on column treadle.gates.slowed_until is
'Until when a rate limit closed it last; another one before then is nothing new.';
comment on column treadle.gates.touched is 'Written by who counts, so that nobody counts twice.';

create table treadle.gate_uses (
  key     text not null collate "C",
  slot    bigint not null,
  amount  numeric(20, 6) not null,
  constraint gate_uses_pkey primary key (key, slot)
)
with (fillfactor = 50);

comment on table treadle.gate_uses is
'What passed a gate that is limited by rate, by sixtieths of its period.';

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
'Types whose tasks failed in a row; none of an open one is claimed until its probe is due.';
comment on column treadle.breakers.lost_agent is
'The last agent whose loss was counted: all that it had is one failure.';
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
'Dollars that an agent, a DAG, a project, a type or all may spend, for good or in each period.';
comment on column treadle.budgets.reserved_usd is
'What claimed tasks may still spend; the sum of its reservations.';

create table treadle.reservations (
  task_id    uuid not null,
  budget_id  bigint not null,
  usd        numeric(14, 6) not null,
  constraint reservations_pkey primary key (task_id, budget_id),
  constraint reservations_usd_check check (usd >= 0)
)
with (fillfactor = 50);

comment on table treadle.reservations is 'What a claimed task may still spend of a budget.';

insert into treadle.budgets (scope, scope_key, limit_usd, spent_usd, created_by)
select
  'agent',
  agents.id,
  agents.budget_usd,
  0,
  'treadle'
from treadle.agents
where agents.budget_usd is not null;

insert into treadle.budgets (scope, scope_key, limit_usd, spent_usd, created_by)
select
  'dag',
  dags.id::text,
  dags.budget_usd,
  (select coalesce(sum(tasks.cost_usd), 0) from treadle.tasks where tasks.dag_id = dags.id),
  'treadle'
from treadle.dags
where dags.budget_usd is not null;

alter table treadle.waits
add column budget_id bigint,
drop constraint waits_kind_check,
add constraint waits_kind_check check (kind in ('question', 'approval', 'event', 'budget'));

comment on column treadle.waits.budget_id is
'The budget that ran out; empty where the limit of the task itself did.';

create index waits_budget_idx on treadle.waits (budget_id)
where status = 'open' and budget_id is not null;

alter table treadle.spend add column project_id uuid;

create index spend_at_idx on treadle.spend using brin (at) with (autosummarize = on);

-- The table budgets has them now; the views that showed them are made again with the code.
drop view if exists treadle.agent_load, treadle.dag_overview, treadle.stuck;
alter table treadle.agents drop column budget_usd;
alter table treadle.dags drop column budget_usd;

-- They take or return something else now.
drop function if exists treadle.claim_tasks(
  text, text[], text[], integer, boolean, uuid, boolean
);
drop function if exists treadle.claiming_agent(text, integer);
drop function if exists treadle.affordable_rows(tid[], numeric);
drop function if exists treadle.lane_of(text, text, text[], text, bigint);
drop function if exists treadle.place_task(treadle.tasks, numeric);
drop function if exists treadle.store_nodes(
  jsonb, treadle.tasks, uuid[], treadle.tasks[], integer[], integer[]
);
drop function if exists treadle.node_kinds(jsonb, timestamptz);
drop function if exists treadle.pick_from_lane(integer, integer, numeric, bigint, bigint);
drop function if exists treadle.open_lanes(treadle.agents, text[], text[], timestamptz);
drop function if exists treadle.pick_tasks(integer[], bigint[], integer, numeric);
drop function if exists treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[]
);
drop function if exists treadle.fail_task(uuid, uuid, text, text, text, double precision);
drop function if exists treadle.end_attempts(
  tid[], text[], text[], text[], text[], double precision[]
);
drop function if exists treadle.judge_attempt(treadle.tasks, text, text, double precision);
drop function if exists treadle.record_spend(uuid, uuid, jsonb);
drop function if exists treadle.add_spend(treadle.tasks, text, jsonb);
drop function if exists treadle.save_step(
  uuid, uuid, text, jsonb, text, text, text, timestamptz, jsonb
);
drop function if exists treadle.take_rows(tid[], treadle.agents, uuid, boolean, timestamptz);
drop function if exists treadle.settle_completed(uuid[], uuid[], uuid[], timestamptz);

-- What ended with the database itself is nobody's failure.
alter table treadle.attempts
drop constraint attempts_class_check,
add constraint attempts_class_check check (
  class in (
    'timeout', 'crash', 'rate_limit', 'invalid_output', 'error', 'auth_failure', 'budget_exceeded',
    'refused', 'unavailable'
  )
) not valid;
alter table treadle.attempts validate constraint attempts_class_check;
