-- What version 0004 of the schema had as code: functions, views and triggers, as installed then.

create or replace function treadle.agent_heartbeat(p_id text)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_status text;
begin
  update treadle.agents
  set
    heartbeat_at = treadle.clock(),
    status = case when agents.silent then 'active' else agents.status end,
    silent = false
  where agents.id = p_id
  returning agents.status into v_status;
  if not found then
    perform treadle.claiming_agent(p_id, 1);
  end if;
  return v_status;
end;
$$;

comment on function treadle.agent_heartbeat(text) is
'Record that an agent lives; returns its status: active, draining or offline.';

revoke all on function treadle.agent_heartbeat(text) from public;
grant execute on function treadle.agent_heartbeat(text) to treadle_worker;

create or replace function treadle.mark_silent_agents()
returns setof text
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_now timestamptz := treadle.clock();
begin
  return query
  with gone as materialized (
    select agents.id
    from treadle.agents
    where
      agents.status <> 'offline'
      and agents.heartbeat_at + make_interval(secs => 3 * agents.heartbeat_s) < v_now
    order by agents.id
    for no key update skip locked
  ),

  marked as (
    update treadle.agents
    -- A heartbeat brings back one that was active, not one that a person was draining.
    set status = 'offline', silent = agents.status = 'active'
    where agents.id in (select gone.id from gone)
    returning agents.id
  ),

  told as (
    insert into treadle.events (at, kind, actor, data)
    select v_now, 'agent.silent', marked.id, '{}'
    from marked
  )

  select marked.id from marked;
end;
$$;

comment on function treadle.mark_silent_agents() is
'Set agents offline that no longer send heartbeats; returns their ids.';

revoke all on function treadle.mark_silent_agents() from public;
grant execute on function treadle.mark_silent_agents() to treadle_worker;

create or replace function treadle.register_agent(
  p_id                    text,
  p_type                  text default 'worker',
  p_capabilities          text[] default '{}',
  p_models                text[] default '{}',
  p_queues                text[] default '{default}',
  p_task_types            text[] default null,
  p_max_concurrent_tasks  integer default null,
  p_budget_usd            numeric default null,
  p_heartbeat_s           double precision default 30,
  p_claim_ttl_s           double precision default 60,
  p_url                   text default null,
  p_meta                  jsonb default '{}'
)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_name text;
begin
  insert into treadle.agents (
    id, type, capabilities, models, queues, task_types, max_concurrent_tasks, budget_usd,
    heartbeat_s, claim_ttl_s, url, meta, heartbeat_at, registered_at
  )
  values (
    p_id, p_type, p_capabilities, p_models, p_queues, p_task_types, p_max_concurrent_tasks,
    p_budget_usd, p_heartbeat_s, p_claim_ttl_s, p_url, p_meta, treadle.clock(), treadle.clock()
  )
  on conflict (id) do update
  set
    type = excluded.type,
    status = 'active',
    silent = false,
    capabilities = excluded.capabilities,
    models = excluded.models,
    queues = excluded.queues,
    task_types = excluded.task_types,
    max_concurrent_tasks = excluded.max_concurrent_tasks,
    budget_usd = excluded.budget_usd,
    heartbeat_s = excluded.heartbeat_s,
    claim_ttl_s = excluded.claim_ttl_s,
    url = excluded.url,
    meta = excluded.meta,
    heartbeat_at = excluded.heartbeat_at,
    registered_at = excluded.registered_at;
  return p_id;
exception
  when check_violation or not_null_violation or data_exception then
    get stacked diagnostics v_name = constraint_name;
    perform treadle.refuse(
      format('agent %s cannot be registered: %s', left(quote_nullable(p_id), 60), sqlerrm),
      jsonb_build_object('argument', coalesce(nullif(v_name, ''), 'id')),
      'An id has 1 to 200 bytes; intervals are above 0 and at most a day; limits are not negative.'
    );
end;
$$;

comment on function treadle.register_agent(
  text, text, text[], text[], text[], text[], integer, numeric,
  double precision, double precision, text, jsonb
) is 'Register an agent with what it can do and how often it will give a sign of life.';

revoke all on function treadle.register_agent(
  text, text, text[], text[], text[], text[], integer, numeric,
  double precision, double precision, text, jsonb
) from public;
grant execute on function treadle.register_agent(
  text, text, text[], text[], text[], text[], integer, numeric,
  double precision, double precision, text, jsonb
) to treadle_worker;

create or replace function treadle.set_agent_status(p_id text, p_status text)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
begin
  if p_status is null or p_status not in ('active', 'draining', 'offline') then
    perform treadle.refuse(
      format('an agent cannot be %L', left(p_status, 60)),
      jsonb_build_object('argument', 'status'),
      'It can be active, draining or offline.'
    );
  end if;

  update treadle.agents
  set status = p_status, silent = false
  where agents.id = p_id;
  if not found then
    perform treadle.claiming_agent(p_id, 1);
  end if;

  insert into treadle.events (at, kind, actor, data)
  values (treadle.clock(), 'agent.' || p_status, p_id, jsonb_build_object('by', session_user));
  return p_status;
end;
$$;

comment on function treadle.set_agent_status(text, text) is
'Set an agent active, draining or offline.';

revoke all on function treadle.set_agent_status(text, text) from public;
grant execute on function treadle.set_agent_status(text, text) to
treadle_worker, treadle_operator;

create or replace function treadle.affordable_rows(p_rows tid[], p_budget numeric)
returns tid[]
language sql
stable
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select coalesce(array_agg(running.ctid order by running.at), '{}')
  from (
    select
      tasks.ctid,
      picked.at,
      sum(coalesce(tasks.max_cost_usd, 0)) over (order by picked.at) as total
    from unnest(p_rows) with ordinality as picked (ctid, at)
    inner join treadle.tasks on picked.ctid = tasks.ctid
  ) as running
  where running.total <= p_budget
$$;

comment on function treadle.affordable_rows(tid[], numeric) is
'Internal: cuts a list of tasks off where their summed max_cost_usd passes the budget.';

revoke all on function treadle.affordable_rows(tid[], numeric) from public;

create or replace function treadle.claim_tasks(
  p_agent   text,
  p_queues  text[] default '{default}',
  p_types   text[] default null,
  p_limit   integer default 1,
  p_start   boolean default true,
  p_token   uuid default null,
  p_idle    boolean default false
)
returns table (
  id uuid, claim_token uuid, queue text, type text, spec jsonb, attempt smallint,
  max_attempts smallint, timeout_s double precision, priority smallint, lease_until timestamptz,
  created_at timestamptz, deadline_at timestamptz, title text, tags text[], parent_id uuid,
  dag_id uuid, project_id uuid, idempotency_key text, previous jsonb
)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_ms    bigint := treadle.rank_ms(v_now);
  v_token uuid := coalesce(p_token, gen_random_uuid());
  v_agent treadle.agents;
  v_open  record;
  v_rows  tid[] := array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.agent_id = p_agent
      and tasks.claim_token = p_token
      and tasks.status in ('claimed', 'running', 'validating')
  );
begin
  if v_rows = '{}' then
    v_agent := treadle.claiming_agent(p_agent, p_limit);
    v_open := treadle.open_lanes(v_agent, p_queues, p_types, v_now);
    if p_idle then
      perform treadle.mark_idle(p_queues);
    end if;

    v_rows := treadle.pick_tasks(
      v_open.lanes, v_open.shifts, least(p_limit, v_agent.max_concurrent_tasks), v_agent.budget_usd
    );
    if v_agent.budget_usd is not null then
      v_rows := treadle.affordable_rows(v_rows, v_agent.budget_usd);
    end if;
    if v_rows = '{}' then
      return;
    end if;

    v_rows := treadle.take_rows(v_rows, v_agent, v_token, p_start, v_now);
  end if;

  return query
  select
    tasks.id, tasks.claim_token, tasks.queue, tasks.type, tasks.spec, tasks.attempt,
    tasks.max_attempts, tasks.timeout_s, tasks.priority, tasks.lease_until, tasks.created_at,
    tasks.deadline_at, tasks.title, tasks.tags, tasks.parent_id, tasks.dag_id, tasks.project_id,
    tasks.idempotency_key,
    case
      when tasks.attempt > 1 or tasks.rate_limits > 0 then treadle.previous_attempts(tasks.id)
    end
  from treadle.tasks
  inner join treadle.lanes on tasks.lane_id = lanes.id
  where tasks.ctid = any (v_rows)
  order by tasks.rank - treadle.shift_at(lanes.ageing, v_ms), tasks.id;
end;
$$;

comment on function treadle.claim_tasks(text, text[], text[], integer, boolean, uuid, boolean) is
'Claim up to p_limit of the best tasks for an agent; with p_start they are running at once.';

revoke all on function treadle.claim_tasks(text, text[], text[], integer, boolean, uuid, boolean)
from public;
grant execute on function
treadle.claim_tasks(text, text[], text[], integer, boolean, uuid, boolean) to treadle_worker;

create or replace function treadle.claim_verdicts(p_ids uuid[], p_tokens uuid[])
returns table (id uuid, verdict text)
language sql
stable
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    claim.id,
    case
      when tasks.claim_token = claim.token then 'ok'
      when tasks.status = 'cancelled' and tasks.last_token = claim.token then 'cancelled'
      else 'lost'
    end
  from unnest(p_ids, p_tokens) with ordinality as claim (id, token, at)
  left join treadle.tasks on claim.id = tasks.id
  order by claim.at
$$;

comment on function treadle.claim_verdicts(uuid[], uuid[]) is
'Internal: compares claims with the rows.';

revoke all on function treadle.claim_verdicts(uuid[], uuid[]) from public;

create or replace function treadle.claiming_agent(p_agent text, p_limit integer)
returns treadle.agents
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
as $$
declare
  v_agent treadle.agents;
begin
  if p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.refuse(
      format('limit must be 1 to 10000, not %s', coalesce(p_limit::text, 'null')),
      jsonb_build_object('argument', 'limit')
    );
  end if;

  select agents.* into v_agent from treadle.agents where agents.id = p_agent;
  if not found then
    perform treadle.refuse(
      format('agent %s is not registered', coalesce(quote_literal(left(p_agent, 60)), 'null')),
      jsonb_build_object('agent', left(p_agent, 200)),
      format('First: select treadle.register_agent(%L)', left(p_agent, 60)),
      'TR204'
    );
  end if;

  -- A claim is a sign of life, also of an agent that the reaper took for dead.
  if v_agent.silent then
    perform treadle.agent_heartbeat(p_agent);
    select agents.* into v_agent from treadle.agents where agents.id = p_agent;
  end if;

  if v_agent.status <> 'active' then
    v_agent.max_concurrent_tasks := 0;
  elsif num_nonnulls(v_agent.max_concurrent_tasks, v_agent.budget_usd) > 0 then
    select agents.* into v_agent from treadle.agents where agents.id = p_agent for no key update;
    -- It may hold more than its limit, when that was lowered since.
    select
      case
        when v_agent.max_concurrent_tasks is not null
          then greatest(0, v_agent.max_concurrent_tasks - count(*))
      end,
      v_agent.budget_usd - coalesce(sum(tasks.max_cost_usd), 0)
    into v_agent.max_concurrent_tasks, v_agent.budget_usd
    from treadle.tasks
    where tasks.agent_id = p_agent and tasks.status in ('claimed', 'running', 'validating');
  end if;
  return v_agent;
end;
$$;

comment on function treadle.claiming_agent(text, integer) is
'Internal: the agent''s row; max_concurrent_tasks and budget_usd are what is left of them.';

revoke all on function treadle.claiming_agent(text, integer) from public;

create or replace function treadle.complete_task(
  p_id      uuid,
  p_token   uuid,
  p_output  jsonb default null
)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_verdict text;
begin
  select ended.verdict
  into v_verdict
  from treadle.complete_tasks(array[p_id], array[p_token], array[p_output]) as ended;
  return treadle.demand_claim(p_id, v_verdict);
end;
$$;

comment on function treadle.complete_task(uuid, uuid, jsonb) is
'Complete one task; raises when another claim has taken over.';

revoke all on function treadle.complete_task(uuid, uuid, jsonb) from public;
grant execute on function treadle.complete_task(uuid, uuid, jsonb) to treadle_worker;

create or replace function treadle.complete_tasks(
  p_ids      uuid[],
  p_tokens   uuid[],
  p_outputs  jsonb[] default null,
  p_run_ms   integer[] default null
)
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[];
  v_done uuid[];
begin
  perform treadle.check_pairs(p_ids, p_tokens);
  perform treadle.check_pairs(p_ids, null, 'outputs', cardinality(p_outputs))
  where p_outputs is not null;
  perform treadle.keep_durable();

  with held as materialized (
    select tasks.id, claim.output, claim.run_ms
    from unnest(p_ids, p_tokens, p_outputs, p_run_ms) as claim (id, token, output, run_ms)
    inner join treadle.tasks on claim.id = tasks.id
    where
      claim.token = tasks.claim_token
      or (claim.token = tasks.last_token and tasks.completed_at is null)
    order by tasks.id
    for no key update of tasks
  ),

  done as (
    update treadle.tasks
    set
      status = 'completed',
      output = held.output,
      outcome = 'completed',
      completed_at = v_now,
      completed_by = coalesce(
        tasks.agent_id,
        (
          select attempts.agent_id
          from treadle.attempts
          where attempts.task_id = tasks.id and attempts.claim_token = tasks.last_token
        )
      ),
      started_at = coalesce(
        tasks.started_at,
        greatest(tasks.claimed_at, v_now - make_interval(secs => held.run_ms / 1000.0))
      ),
      last_token = coalesce(tasks.claim_token, tasks.last_token),
      agent_id = null,
      claim_token = null,
      lease_until = null,
      retry_at = null,
      failure_class = null,
      failure_reason = null
    from held
    -- Not by ctid: a row that changed while it was waited for would not be found there.
    where tasks.id = held.id
    returning tasks.ctid, tasks.id
  )

  select array_agg(done.ctid), array_agg(done.id) into v_rows, v_done from done;

  perform treadle.audit_tasks(v_rows, 'completed', null);
  return query
  select verdicts.* from treadle.end_verdicts(p_ids, p_tokens, v_done, 'completed') as verdicts;
end;
$$;

comment on function treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[]) is
'Complete tasks with their outputs; says of each: completed, already or stale.';

revoke all on function treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[]) from public;
grant execute on function treadle.complete_tasks(uuid[], uuid[], jsonb[], integer[]) to
treadle_worker;

create or replace function treadle.demand_claim(p_id uuid, p_verdict text)
returns text
language plpgsql
stable
set search_path = ''
as $$
begin
  if p_verdict in ('stale', 'lost', 'cancelled') then
    perform treadle.refuse(
      format('the claim on task %s no longer holds', p_id),
      jsonb_build_object('task_id', p_id),
      'Drop the result: the task was taken over, cancelled or has ended.',
      'TR101'
    );
  end if;
  return p_verdict;
end;
$$;

comment on function treadle.demand_claim(uuid, text) is
'Internal: raises for a claim that was superseded.';

revoke all on function treadle.demand_claim(uuid, text) from public;

create or replace function treadle.end_attempts(
  p_rows         tid[],
  p_classes      text[],
  p_reasons      text[],
  p_errors       text[],
  p_actions      text[],
  p_retry_after  double precision[]
)
returns table (id uuid, status text, retry_at timestamptz)
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := treadle.clock();
  v_rows   tid[];
  v_queues text[];
  v_due_at timestamptz;
  v_end    treadle.ended_attempt[];
begin
  select array_agg(
    row(
      tasks.ctid, tasks.id, tasks.claim_token, tasks.agent_id, tasks.claimed_at, tasks.started_at,
      tasks.attempt, tasks.cost_usd, ended.class, ended.reason, left(ended.error, 20000),
      judged.next, judged.delay_s, judged.poison_pill, judged.refunded
    )::treadle.ended_attempt
  )
  into v_end
  from unnest(p_rows, p_classes, p_reasons, p_errors, p_actions, p_retry_after)
    as ended (ctid, class, reason, error, action, retry_after)
  inner join treadle.tasks on ended.ctid = tasks.ctid
  cross join lateral treadle.judge_attempt(tasks, ended.class, ended.action, ended.retry_after)
    as judged;

  perform treadle.record_attempts(v_end, v_now);

  with moved as (
    update treadle.tasks
    set
      status = ended.next,
      attempt = tasks.attempt - ended.refunded::integer,
      rate_limits = tasks.rate_limits + ended.refunded::integer,
      retry_at = case
        when ended.next = 'retrying' then v_now + make_interval(secs => ended.delay_s)
      end,
      completed_at = case when ended.next in ('dead_lettered', 'cancelled') then v_now end,
      outcome = case when ended.next in ('dead_lettered', 'cancelled') then ended.next end,
      failure_class = ended.class,
      -- The first line says what; the rest, a traceback perhaps, is in the history.
      failure_reason = left(split_part(coalesce(ended.error, ended.reason), e'\n', 1), 2000),
      last_token = tasks.claim_token,
      agent_id = null,
      claim_token = null,
      lease_until = null,
      claimed_at = null,
      started_at = null,
      heartbeat_at = null
    from unnest(v_end) as ended
    where tasks.ctid = ended.place
    returning tasks.ctid, tasks.id, tasks.status, tasks.retry_at, tasks.queue
  )

  select
    array_agg(moved.ctid),
    array_agg(distinct moved.queue) filter (where moved.status = 'ready'),
    min(moved.retry_at)
  into v_rows, v_queues, v_due_at
  from moved;

  perform treadle.wake_queues(v_queues);
  perform treadle.wake_promoter(v_due_at);
  perform treadle.audit_tasks(v_rows, 'failed', null);
  return query
  select tasks.id, tasks.status, tasks.retry_at
  from treadle.tasks where tasks.ctid = any (v_rows);
end;
$$;

comment on function treadle.end_attempts(
  tid[], text[], text[], text[], text[], double precision[]
) is 'Internal: ends attempts that failed and decides what follows.';

revoke all on function treadle.end_attempts(
  tid[], text[], text[], text[], text[], double precision[]
) from public;

create or replace function treadle.end_verdicts(
  p_ids     uuid[],
  p_tokens  uuid[],
  p_done    uuid[],
  p_verdict text
)
returns table (id uuid, verdict text)
language plpgsql
stable
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
  if cardinality(p_done) = cardinality(p_ids) then
    return query select claim.id, p_verdict from unnest(p_ids) as claim (id);
    return;
  end if;

  return query
  select
    claim.id,
    case
      when tasks.last_token = claim.token and claim.id = any (p_done) then p_verdict
      when
        tasks.last_token = claim.token
        and (tasks.status = 'completed') = coalesce(p_verdict = 'completed', false)
        then 'already'
      else 'stale'
    end
  from unnest(p_ids, p_tokens) with ordinality as claim (id, token, at)
  left join treadle.tasks on claim.id = tasks.id
  order by claim.at;
end;
$$;

comment on function treadle.end_verdicts(uuid[], uuid[], uuid[], text) is
'Internal: tells a repeated ending from a superseded one.';

revoke all on function treadle.end_verdicts(uuid[], uuid[], uuid[], text) from public;

create or replace function treadle.fail_task(
  p_id           uuid,
  p_token        uuid,
  p_error        text default null,
  p_class        text default 'error',
  p_action       text default null,
  p_retry_after  double precision default null
)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_verdict text;
begin
  select ended.verdict
  into v_verdict
  from treadle.fail_tasks(
    array[p_id], array[p_token], array[p_class], array[p_error], array[p_action],
    array[p_retry_after]
  ) as ended;
  -- Cancelled is what was asked for here, not a claim that was lost.
  if p_action = 'cancel' and v_verdict = 'cancelled' then
    return v_verdict;
  end if;
  return treadle.demand_claim(p_id, v_verdict);
end;
$$;

comment on function treadle.fail_task(uuid, uuid, text, text, text, double precision) is
'Fail one task; raises when another claim has taken over.';

revoke all on function treadle.fail_task(uuid, uuid, text, text, text, double precision)
from public;
grant execute on function treadle.fail_task(uuid, uuid, text, text, text, double precision) to
treadle_worker;

create or replace function treadle.fail_tasks(
  p_ids          uuid[],
  p_tokens       uuid[],
  p_classes      text[] default null,
  p_errors       text[] default null,
  p_actions      text[] default null,
  p_retry_after  double precision[] default null
)
returns table (id uuid, verdict text, retry_at timestamptz)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  c_classes constant text[] := array[
    'timeout', 'crash', 'rate_limit', 'invalid_output', 'error', 'auth_failure',
    'budget_exceeded', 'refused'
  ];
  v_held record;
begin
  perform treadle.check_pairs(p_ids, p_tokens);
  perform treadle.check_pairs(p_ids, null, given.name, given.length)
  from (
    values
    ('classes', cardinality(p_classes)), ('errors', cardinality(p_errors)),
    ('actions', cardinality(p_actions)), ('retry_after', cardinality(p_retry_after))
  ) as given (name, length)
  where given.length is not null;
  perform treadle.keep_durable();

  select
    array_agg(held.ctid) as rows,
    array_agg(held.id) as ids,
    array_agg(case when held.class = any (c_classes) then held.class else 'error' end) as classes,
    array_agg(held.error) as errors,
    array_agg(held.action) as actions,
    array_agg(held.retry_after) as retry_after,
    array_fill('handler'::text, array[count(*)::integer]) as reasons
  into v_held
  from (
    select tasks.ctid, tasks.id, claim.class, claim.error, claim.action, claim.retry_after
    from (
      -- Named twice, it is still one attempt.
      select distinct on (given.id, given.token) given.*
      from unnest(p_ids, p_tokens, p_classes, p_errors, p_actions, p_retry_after)
        as given (id, token, class, error, action, retry_after)
    ) as claim
    inner join treadle.tasks on claim.id = tasks.id and claim.token = tasks.claim_token
    order by tasks.id
    for no key update of tasks
  ) as held;

  perform moved.id
  from treadle.end_attempts(
    v_held.rows, v_held.classes, v_held.reasons, v_held.errors, v_held.actions, v_held.retry_after
  ) as moved;

  return query
  select
    verdicts.id,
    case
      when verdicts.verdict = 'already' and verdicts.id = any (v_held.ids) then tasks.status
      else verdicts.verdict
    end,
    case when verdicts.verdict = 'already' then tasks.retry_at end
  from treadle.end_verdicts(p_ids, p_tokens, '{}', null) as verdicts
  left join treadle.tasks on verdicts.id = tasks.id;
end;
$$;

comment on function treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[]
) is 'End failed attempts; says of each what becomes of its task.';

revoke all on function treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[]
) from public;
grant execute on function treadle.fail_tasks(
  uuid[], uuid[], text[], text[], text[], double precision[]
) to treadle_worker;

create or replace function treadle.heartbeat_tasks(
  p_ids       uuid[],
  p_tokens    uuid[],
  p_progress  jsonb[] default null
)
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
begin
  perform treadle.check_pairs(p_ids, p_tokens);
  if p_progress is not null then
    perform treadle.check_pairs(p_ids, null, 'progress', cardinality(p_progress));
  end if;

  with held as materialized (
    select tasks.id, claim.progress
    from unnest(p_ids, p_tokens, p_progress) as claim (id, token, progress)
    inner join treadle.tasks on claim.id = tasks.id and claim.token = tasks.claim_token
    where tasks.started_at is not null
    order by tasks.id
    for no key update of tasks
  )

  update treadle.tasks
  set
    heartbeat_at = v_now,
    lease_until = greatest(tasks.lease_until, v_now + treadle.lease(agents, true)),
    progress = coalesce(held.progress, tasks.progress)
  from held, treadle.agents
  -- Not by ctid: a row that changed while it was waited for would not be found there.
  where tasks.id = held.id and tasks.agent_id = agents.id;

  return query select verdicts.* from treadle.claim_verdicts(p_ids, p_tokens) as verdicts;
end;
$$;

comment on function treadle.heartbeat_tasks(uuid[], uuid[], jsonb[]) is
'Renew leases and record progress; says of each claim: ok, lost or cancelled.';

revoke all on function treadle.heartbeat_tasks(uuid[], uuid[], jsonb[]) from public;
grant execute on function treadle.heartbeat_tasks(uuid[], uuid[], jsonb[]) to treadle_worker;

create or replace function treadle.judge_attempt(
  p_task         treadle.tasks,
  p_class        text,
  p_action       text,
  p_retry_after  double precision,
  out next         text,
  out delay_s      double precision,
  out poison_pill  boolean,
  out refunded     boolean
)
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_policy jsonb := treadle.retry_policy(p_task.queue, p_task.type, p_task.retry);
  v_class  jsonb := to_jsonb(p_class);
begin
  refunded := p_class = 'rate_limit'
    and p_action is distinct from 'fail'
    and p_task.rate_limits < (v_policy ->> 'max_rate_limits')::integer;
  poison_pill := (v_policy ->> 'poison')::boolean and not refunded and p_task.attempt >= 3 and (
    select count(*) >= 3 and count(distinct tried.agent_id) >= 2
    from (
      select attempts.agent_id
      from treadle.attempts
      where
        attempts.task_id = p_task.id and attempts.outcome = 'failed'
        -- Since a person gave it a new round.
        and attempts.ended_at > all (
          select dead_letters.resolved_at
          from treadle.dead_letters
          where dead_letters.task_id = p_task.id and dead_letters.resolution is not null
        )
      union all
      select p_task.agent_id
    ) as tried
  );

  -- A delay that a handler or a server asked for is kept within reason.
  delay_s := case
    when p_retry_after >= 0 then least(p_retry_after, 2592000)
    else treadle.retry_delay(v_policy, p_task.attempt)
  end;
  next := case
    when p_action = 'cancel' then 'cancelled'
    when refunded and delay_s > 0 then 'retrying'
    when refunded then 'ready'
    when p_action = 'fail' or poison_pill or p_task.attempt >= p_task.max_attempts
      then 'dead_lettered'
    when p_action is distinct from 'retry' and (
      v_policy -> 'no_retry_on' @> v_class
      or (v_policy -> 'retry_on' <> 'null' and not v_policy -> 'retry_on' @> v_class)
    ) then 'dead_lettered'
    when delay_s > 0 then 'retrying'
    else 'ready'
  end;
end;
$$;

comment on function treadle.judge_attempt(treadle.tasks, text, text, double precision) is
'Internal: decides what becomes of a task whose attempt failed.';

revoke all on function treadle.judge_attempt(treadle.tasks, text, text, double precision)
from public;

create or replace function treadle.lease(p_agent treadle.agents, p_started boolean)
returns interval
language sql
immutable
parallel safe
as $$
  select pg_catalog.make_interval(
    secs => case when p_started then 3 * p_agent.heartbeat_s else p_agent.claim_ttl_s end
  )
$$;

comment on function treadle.lease(treadle.agents, boolean) is
'Internal: three heartbeats once started, the claim ttl before.';

revoke all on function treadle.lease(treadle.agents, boolean) from public;

create or replace function treadle.next_reap_at()
returns timestamptz
language sql
stable
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select min(
    least(tasks.lease_until, tasks.started_at + make_interval(secs => tasks.timeout_s))
  )
  from treadle.tasks
  where tasks.status in ('claimed', 'running', 'validating')
$$;

comment on function treadle.next_reap_at() is 'When the reaper has to look next at the earliest.';

revoke all on function treadle.next_reap_at() from public;
grant execute on function treadle.next_reap_at() to treadle_worker;

create or replace function treadle.pick_from_lane(
  p_lane    integer,
  p_limit   integer,
  p_budget  numeric default null,
  p_from    bigint default null,
  p_upto    bigint default null
)
returns tid[]
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_from   bigint := coalesce(p_from, -9223372036854775808);
  v_upto   bigint := coalesce(p_upto, 9223372036854775807);
  v_budget numeric := coalesce(p_budget, 'Infinity');
begin
  return array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.lane_id = p_lane
      and tasks.status = 'ready'
      and tasks.rank between v_from and v_upto
      and coalesce(tasks.max_cost_usd, 0) <= v_budget
    order by tasks.rank, tasks.id
    limit p_limit
    for update skip locked
  );
end;
$$;

comment on function treadle.pick_from_lane(integer, integer, numeric, bigint, bigint) is
'Internal: locks up to p_limit ready tasks of a lane in order of rank.';

revoke all on function treadle.pick_from_lane(integer, integer, numeric, bigint, bigint)
from public;

create or replace function treadle.pick_over_lanes(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_limit   integer,
  p_budget  numeric
)
returns tid[]
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_picked tid[] := '{}';
  v_lanes  integer[];
  v_shifts bigint[];
  v_heads  bigint[];
  v_bound  bigint;
begin
  select
    array_agg(lane.id order by head.rank - lane.shift),
    array_agg(lane.shift order by head.rank - lane.shift),
    array_agg(head.rank - lane.shift order by head.rank - lane.shift)
  into v_lanes, v_shifts, v_heads
  from unnest(p_lanes, p_shifts) as lane (id, shift)
  cross join lateral (
    select tasks.rank
    from treadle.tasks
    where tasks.lane_id = lane.id and tasks.status = 'ready'
    order by tasks.rank, tasks.id
    limit 1
  ) as head;

  while cardinality(v_lanes) > 0 and cardinality(v_picked) < p_limit loop
    v_bound := v_heads[2] + v_shifts[1];
    -- From the head on: what lies before it and is still ready is what we have just locked.
    v_picked := v_picked || treadle.pick_from_lane(
      v_lanes[1], p_limit - cardinality(v_picked), p_budget, v_heads[1] + v_shifts[1], v_bound
    );

    -- What is left of this lane up to the bound is ours or locked by others: go on behind it.
    select
      array_agg(lane.id order by lane.head),
      array_agg(lane.shift order by lane.head),
      array_agg(lane.head order by lane.head)
    into v_lanes, v_shifts, v_heads
    from (
      select ahead.id, ahead.shift, ahead.head
      from unnest(v_lanes[2:], v_shifts[2:], v_heads[2:]) as ahead (id, shift, head)
      union all
      select v_lanes[1], v_shifts[1], next.head
      from (
        select tasks.rank - v_shifts[1] as head
        from treadle.tasks
        -- No bound: no other lane is left, and this one gave all it has.
        where tasks.lane_id = v_lanes[1] and tasks.status = 'ready' and tasks.rank > v_bound
        order by tasks.rank, tasks.id
        limit 1
      ) as next
    ) as lane;
  end loop;

  return v_picked;
end;
$$;

comment on function treadle.pick_over_lanes(integer[], bigint[], integer, numeric) is
'Internal: locks up to p_limit ready tasks of several lanes, best first.';

revoke all on function treadle.pick_over_lanes(integer[], bigint[], integer, numeric) from public;

create or replace function treadle.pick_tasks(
  p_lanes   integer[],
  p_shifts  bigint[],
  p_limit   integer,
  p_budget  numeric default null
)
returns tid[]
language plpgsql
volatile
set search_path = ''
as $$
begin
  return case
    when cardinality(p_lanes) = 1
      then treadle.pick_from_lane(p_lanes[1], p_limit, p_budget)
    else treadle.pick_over_lanes(p_lanes, p_shifts, p_limit, p_budget)
  end;
end;
$$;

comment on function treadle.pick_tasks(integer[], bigint[], integer, numeric) is
'Internal: locks up to p_limit ready tasks of the lanes, best first, and returns where they are.';

revoke all on function treadle.pick_tasks(integer[], bigint[], integer, numeric) from public;

create or replace function treadle.previous_attempts(p_id uuid)
returns jsonb
language sql
stable
set search_path = ''
as $$
  select
    jsonb_agg(
      jsonb_build_object(
        'attempt', past.attempt,
        'agent', past.agent_id,
        'outcome', past.outcome,
        'class', past.class,
        'reason', past.reason,
        'error', left(past.error, 2000),
        'ended_at', past.ended_at,
        'duration_s', extract(
          epoch from past.ended_at - coalesce(past.started_at, past.claimed_at)
        )
      )
      order by past.ended_at
    )
  from (
    select attempts.*
    from treadle.attempts
    where attempts.task_id = p_id
    order by attempts.ended_at desc
    limit 20
  ) as past
$$;

comment on function treadle.previous_attempts(uuid) is
'Internal: the last twenty ended attempts of a task as json, oldest first.';

revoke all on function treadle.previous_attempts(uuid) from public;

create or replace function treadle.reap_claims(
  p_limit  integer default 100,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, reason text, status text, problem text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_stale record;
begin
  perform treadle.keep_durable();
  for v_stale in
    select
      array_agg(stale.ctid) as rows,
      array_agg(stale.id) as ids,
      array_agg(stale.reason) as reasons
    from treadle.stale_claims(v_now, p_limit, p_skip) as stale
    having count(*) > 0
  loop
    begin
      return query
      select moved.id, v_stale.reasons[array_position(v_stale.ids, moved.id)], moved.status, null
      from treadle.reap_rows(v_stale.rows, v_stale.reasons) as moved;
    exception when others then
      -- One of them is bad: each on its own, so that the rest go through.
      for v_at in 1..cardinality(v_stale.rows) loop
        begin
          return query
          select moved.id, v_stale.reasons[v_at], moved.status, null
          from treadle.reap_rows(v_stale.rows[v_at:v_at], v_stale.reasons[v_at:v_at]) as moved;
        exception when others then
          return query select v_stale.ids[v_at], v_stale.reasons[v_at], null, sqlerrm;
        end;
      end loop;
    end;
  end loop;
end;
$$;

comment on function treadle.reap_claims(integer, uuid[]) is
'Fail claims that ran out; says of each why and what becomes of its task.';

revoke all on function treadle.reap_claims(integer, uuid[]) from public;
grant execute on function treadle.reap_claims(integer, uuid[]) to treadle_worker;

create or replace function treadle.reap_rows(p_rows tid[], p_reasons text[])
returns table (id uuid, status text)
language sql
volatile
set search_path = ''
as $$
  select moved.id, moved.status
  from treadle.end_attempts(
    p_rows,
    array(
      select case given.reason when 'timeout' then 'timeout' else 'crash' end
      from unnest(p_reasons) with ordinality as given (reason, at)
      order by given.at
    ),
    p_reasons,
    array(
      select case given.reason
        when 'claim_expired' then 'claimed but not started in time'
        when 'heartbeat_timeout' then 'no heartbeat: the worker is gone or stuck'
        else 'ran longer than its timeout'
      end
      from unnest(p_reasons) with ordinality as given (reason, at)
      order by given.at
    ),
    null,
    null
  ) as moved
$$;

comment on function treadle.reap_rows(tid[], text[]) is
'Internal: turns stale claims into failed attempts.';

revoke all on function treadle.reap_rows(tid[], text[]) from public;

create or replace function treadle.record_attempts(
  p_ended  treadle.ended_attempt[],
  p_now    timestamptz
)
returns void
language sql
volatile
set search_path = ''
as $$
  insert into treadle.attempts (
    task_id, claim_token, attempt, agent_id, claimed_at, started_at, ended_at, outcome, class,
    reason, error, cost_usd
  )
  select
    ended.task_id,
    ended.claim_token,
    ended.attempt,
    ended.agent_id,
    ended.claimed_at,
    ended.started_at,
    p_now,
    case
      when ended.next = 'cancelled' then 'cancelled'
      when ended.refunded then 'rate_limited'
      else 'failed'
    end,
    ended.class,
    ended.reason,
    ended.error,
    greatest(
      0,
      ended.cost_usd - coalesce(
        (
          select sum(attempts.cost_usd) from treadle.attempts
          where attempts.task_id = ended.task_id
        ), 0
      )
    )
  from unnest(p_ended) as ended;

  insert into treadle.dead_letters (
    task_id, dead_lettered_at, attempts, class, reason, poison_pill, total_cost_usd
  )
  select
    ended.task_id, p_now, ended.attempt, ended.class,
    left(split_part(coalesce(ended.error, ended.reason), e'\n', 1), 2000),
    ended.poison_pill, ended.cost_usd
  from unnest(p_ended) as ended
  where ended.next = 'dead_lettered';

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    p_now,
    'task.' || ended.next,
    ended.task_id,
    (select tasks.queue from treadle.tasks where tasks.id = ended.task_id),
    ended.agent_id,
    jsonb_build_object(
      'attempt', ended.attempt,
      'class', ended.class,
      'reason', left(split_part(coalesce(ended.error, ended.reason), e'\n', 1), 500),
      'poison_pill', ended.poison_pill
    )
  from unnest(p_ended) as ended
  where ended.next in ('dead_lettered', 'cancelled');
$$;

comment on function treadle.record_attempts(treadle.ended_attempt[], timestamptz) is
'Internal: appends ended attempts and what follows from them to the history.';

revoke all on function treadle.record_attempts(treadle.ended_attempt[], timestamptz) from public;

create or replace function treadle.release_tasks(p_ids uuid[], p_tokens uuid[])
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_rows   tid[];
  v_done   uuid[];
  v_queues text[];
begin
  perform treadle.check_pairs(p_ids, p_tokens);
  perform treadle.keep_durable();

  with held as materialized (
    select tasks.id
    from unnest(p_ids, p_tokens) as claim (id, token)
    inner join treadle.tasks on claim.id = tasks.id and claim.token = tasks.claim_token
    order by tasks.id
    for no key update of tasks
  ),

  freed as (
    update treadle.tasks
    set
      status = 'ready',
      attempt = tasks.attempt - 1,
      last_token = tasks.claim_token,
      agent_id = null,
      claim_token = null,
      lease_until = null,
      claimed_at = null,
      started_at = null,
      heartbeat_at = null
    -- Not by ctid: a row that changed while it was waited for would not be found there.
    where tasks.id = any (array(select held.id from held))
    returning tasks.ctid, tasks.id, tasks.queue
  )

  select
    array_agg(freed.ctid),
    array_agg(freed.id),
    array_agg(distinct freed.queue)
  into v_rows, v_done, v_queues
  from freed;

  perform treadle.wake_queues(v_queues);
  perform treadle.audit_tasks(v_rows, 'released', null);
  return query
  select verdicts.* from treadle.end_verdicts(p_ids, p_tokens, v_done, 'released') as verdicts;
end;
$$;

comment on function treadle.release_tasks(uuid[], uuid[]) is
'Give tasks back unfinished; says of each: released, already or stale.';

revoke all on function treadle.release_tasks(uuid[], uuid[]) from public;
grant execute on function treadle.release_tasks(uuid[], uuid[]) to treadle_worker;

create or replace function treadle.retry_delay(p_policy jsonb, p_attempt integer)
returns double precision
language sql
volatile
set search_path = ''
as $$
  select
    case p_policy ->> 'strategy'
      when 'immediate' then 0
      else
        least(
          (p_policy ->> 'max_delay_s')::float8,
          (p_policy ->> 'initial_delay_s')::float8
          * case p_policy ->> 'strategy'
            when 'fixed' then 1
            else least(
              power((p_policy ->> 'multiplier')::float8, least(greatest(p_attempt, 1) - 1, 60)), 1e9
            )
          end
        )
        * case when (p_policy ->> 'jitter')::boolean then 0.5 + random() else 1 end
    end
$$;

comment on function treadle.retry_delay(jsonb, integer) is
'Seconds until the next attempt under a policy, after so many attempts.';

revoke all on function treadle.retry_delay(jsonb, integer) from public;
grant execute on function treadle.retry_delay(jsonb, integer) to
treadle_observer, treadle_operator;

create or replace function treadle.retry_policy(p_queue text, p_type text, p_retry jsonb)
returns jsonb
language sql
stable
security definer
set search_path = ''
as $$
  select
    '{
      "strategy": "exponential", "initial_delay_s": 10, "multiplier": 2, "max_delay_s": 300,
      "jitter": true, "retry_on": null,
      "no_retry_on": ["auth_failure", "budget_exceeded", "refused"],
      "max_rate_limits": 100, "poison": true
    }'::jsonb
    || coalesce((select queues.retry from treadle.queues where queues.name = p_queue), '{}')
    || coalesce(
      (select task_types.retry from treadle.task_types where task_types.name = p_type), '{}'
    )
    || coalesce(p_retry, '{}')
$$;

comment on function treadle.retry_policy(text, text, jsonb) is
'The retry policy that applies to a task of this queue and type with these own settings.';

revoke all on function treadle.retry_policy(text, text, jsonb) from public;
grant execute on function treadle.retry_policy(text, text, jsonb) to
treadle_observer, treadle_operator;

create or replace function treadle.stale_claims(
  p_now    timestamptz,
  p_limit  integer,
  p_skip   uuid[]
)
returns table (ctid tid, id uuid, reason text)
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_ids uuid[] := array(
    select tasks.id
    from treadle.tasks
    where
      tasks.status in ('claimed', 'running', 'validating')
      and treadle.stale_reason(tasks, p_now) is not null
      and tasks.id <> all (p_skip)
  );
begin
  return query
  select tasks.ctid, tasks.id, treadle.stale_reason(tasks, p_now)
  from (
    select given.id from unnest(v_ids) as given (id) order by given.id limit p_limit
  ) as stale
  inner join treadle.tasks on stale.id = tasks.id
  where treadle.stale_reason(tasks, p_now) is not null
  for update of tasks skip locked;
end;
$$;

comment on function treadle.stale_claims(timestamptz, integer, uuid[]) is
'Internal: locks up to p_limit claims that ran out.';

revoke all on function treadle.stale_claims(timestamptz, integer, uuid[]) from public;

create or replace function treadle.stale_reason(p_task treadle.tasks, p_now timestamptz)
returns text
language sql
stable
as $$
  select
    case
      when p_task.lease_until < p_now and p_task.started_at is null then 'claim_expired'
      when p_task.lease_until < p_now then 'heartbeat_timeout'
      when p_task.claim_token is not null
        and p_task.started_at + pg_catalog.make_interval(secs => p_task.timeout_s) < p_now
        then 'timeout'
    end
$$;

comment on function treadle.stale_reason(treadle.tasks, timestamptz) is
'Internal: claim_expired, heartbeat_timeout, timeout, or null.';

revoke all on function treadle.stale_reason(treadle.tasks, timestamptz) from public;
grant execute on function treadle.stale_reason(treadle.tasks, timestamptz) to
treadle_observer, treadle_operator;

create or replace function treadle.start_tasks(p_ids uuid[], p_tokens uuid[])
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[];
begin
  perform treadle.check_pairs(p_ids, p_tokens);

  with held as materialized (
    select tasks.id
    from unnest(p_ids, p_tokens) as claim (id, token)
    inner join treadle.tasks on claim.id = tasks.id and claim.token = tasks.claim_token
    order by tasks.id
    for no key update of tasks
  ),

  started as (
    update treadle.tasks
    set
      status = 'running',
      started_at = v_now,
      heartbeat_at = v_now,
      lease_until = v_now + treadle.lease(agents, true)
    from treadle.agents
    where
      -- Not by ctid: a row that changed while it was waited for would not be found there.
      tasks.id = any (array(select held.id from held))
      and tasks.agent_id = agents.id
      and tasks.started_at is null
    returning tasks.ctid
  )

  select array_agg(started.ctid) into v_rows from started;

  perform treadle.audit_tasks(v_rows, 'started', null);
  return query select verdicts.* from treadle.claim_verdicts(p_ids, p_tokens) as verdicts;
end;
$$;

comment on function treadle.start_tasks(uuid[], uuid[]) is
'Turn claimed tasks into running ones; says of each whether the claim still holds.';

revoke all on function treadle.start_tasks(uuid[], uuid[]) from public;
grant execute on function treadle.start_tasks(uuid[], uuid[]) to treadle_worker;

create or replace function treadle.take_rows(
  p_rows   tid[],
  p_agent  treadle.agents,
  p_token  uuid,
  p_start  boolean,
  p_now    timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_until timestamptz := p_now + treadle.lease(p_agent, p_start);
  v_rows  tid[];
begin
  perform treadle.keep_durable();
  with taken as (
    update treadle.tasks
    set
      status = case when p_start then 'running' else 'claimed' end,
      attempt = tasks.attempt + 1,
      agent_id = p_agent.id,
      claim_token = p_token,
      last_token = null,
      claimed_at = p_now,
      started_at = case when p_start then p_now end,
      heartbeat_at = case when p_start then p_now end,
      lease_until = v_until,
      progress = null
    -- A call repeated after the reaper was there must not give a task its old token again.
    where
      tasks.ctid = any (p_rows)
      and tasks.last_token is distinct from p_token
      and (
        tasks.attempt + tasks.rate_limits = 0
        or (
          select count(*)
          from treadle.attempts
          where attempts.task_id = tasks.id and attempts.claim_token = p_token
        ) = 0
      )
    returning tasks.ctid
  )

  select array_agg(taken.ctid) into v_rows from taken;
  perform treadle.audit_tasks(v_rows, 'claimed', p_agent.id);
  return v_rows;
end;
$$;

comment on function treadle.take_rows(tid[], treadle.agents, uuid, boolean, timestamptz) is
'Internal: turns ready tasks into claims of an agent; returns where they are now.';

revoke all on function treadle.take_rows(tid[], treadle.agents, uuid, boolean, timestamptz)
from public;

create or replace function treadle.check_pairs(
  p_ids     uuid[],
  p_tokens  uuid[],
  p_name    text default 'tokens',
  p_length  integer default null
)
returns void
language plpgsql
stable
set search_path = ''
as $$
declare
  v_length integer := coalesce(p_length, cardinality(p_tokens));
begin
  if cardinality(p_ids) is distinct from v_length then
    perform treadle.refuse(
      format('%s ids but %s %s', coalesce(cardinality(p_ids), 0), coalesce(v_length, 0), p_name),
      jsonb_build_object('argument', p_name),
      case p_name
        when 'tokens' then 'Pass the claim token that came with each task.'
        else 'Pass one value for each id, in the same order.'
      end
    );
  end if;
end;
$$;

comment on function treadle.check_pairs(uuid[], uuid[], text, integer) is
'Internal: arrays that describe the same tasks have the same length.';

revoke all on function treadle.check_pairs(uuid[], uuid[], text, integer) from public;

create or replace function treadle.clock()
returns timestamptz
language sql
volatile
parallel safe
as $$
  select pg_catalog.clock_timestamp()
$$;

comment on function treadle.clock() is 'The time by which leases, retries and ages are judged.';

revoke all on function treadle.clock() from public;
grant execute on function treadle.clock() to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;

create or replace function treadle.keep_durable()
returns void
language plpgsql
volatile
as $$
begin
  if pg_catalog.current_setting('synchronous_commit') = 'off' then
    perform pg_catalog.set_config('synchronous_commit', 'on', true);
  end if;
end;
$$;

comment on function treadle.keep_durable() is
'Internal: turns synchronous_commit on for this transaction where the client had it off.';

revoke all on function treadle.keep_durable() from public;

create or replace function treadle.refuse(
  p_message  text,
  p_detail   jsonb default '{}',
  p_hint     text default '',
  p_code     text default 'TR001'
)
returns void
language plpgsql
stable
set search_path = ''
as $$
begin
  raise exception using
    errcode = p_code,
    message = p_message,
    detail = p_detail::text,
    hint = p_hint;
end;
$$;

comment on function treadle.refuse(text, jsonb, text, text) is
'Internal: raises an error with a sentence, a json detail and the next step.';

revoke all on function treadle.refuse(text, jsonb, text, text) from public;

create or replace function treadle.schema_version(
  out version integer,
  out code_checksum text
)
language sql
stable
security definer
set search_path = ''
as $$
  select
    (select max(migrations.version) from treadle.migrations),
    (select code.checksum from treadle.code)
$$;

comment on function treadle.schema_version() is
'The newest applied migration and the checksum of the installed functions and views.';

revoke all on function treadle.schema_version() from public;
grant execute on function treadle.schema_version() to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;

create or replace function treadle.audit_tasks(p_rows tid[], p_what text, p_actor text)
returns void
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
as $$
begin
  if not exists (select from treadle.queues where queues.audit = 'full') then
    return;
  end if;

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    treadle.clock(),
    'task.' || p_what,
    tasks.id,
    tasks.queue,
    p_actor,
    jsonb_build_object('status', tasks.status, 'attempt', tasks.attempt)
  from treadle.tasks
  inner join treadle.queues on tasks.queue = queues.name
  where tasks.ctid = any (p_rows) and queues.audit = 'full'
  order by tasks.id;
end;
$$;

comment on function treadle.audit_tasks(tid[], text, text) is
'Internal: records a transition of tasks in queues with a full audit.';

revoke all on function treadle.audit_tasks(tid[], text, text) from public;

create or replace function treadle.are_names(p_queue text, p_type text)
returns boolean
language sql
stable
set search_path = ''
as $$
  select
    exists (select from treadle.queues where queues.name = p_queue)
    and exists (select from treadle.task_types where task_types.name = p_type)
$$;

comment on function treadle.are_names(text, text) is
'Internal: whether tasks of this queue and type can be.';

revoke all on function treadle.are_names(text, text) from public;

create or replace function treadle.check_names(p_queue text, p_type text)
returns void
language plpgsql
stable
set search_path = ''
as $$
begin
  if treadle.are_names(p_queue, p_type) then
    return;
  end if;

  if not exists (select from treadle.queues where queues.name = p_queue) then
    perform treadle.refuse(
      format('there is no queue %s', coalesce(quote_literal(left(p_queue, 60)), 'null')),
      jsonb_build_object('argument', 'queue', 'queue', left(p_queue, 200)),
      format(
        'Known: %s. Make one: select treadle.define_queue(''name'')',
        array_to_string(array(select queues.name from treadle.queues order by 1 limit 10), ', ')
      ),
      'TR202'
    );
  end if;

  if not exists (select from treadle.task_types where task_types.name = p_type) then
    perform treadle.refuse(
      format('there is no task type %s', coalesce(quote_literal(left(p_type, 60)), 'null')),
      jsonb_build_object('argument', 'type', 'type', left(p_type, 200)),
      format(
        'Known: %s. A worker that handles it makes it known; so does treadle.define_type(''name'')',
        array_to_string(
          array(select task_types.name from treadle.task_types order by 1 limit 10), ', '
        )
      ),
      'TR203'
    );
  end if;
end;
$$;

comment on function treadle.check_names(text, text) is
'Internal: refuses a queue or a type that does not exist.';

revoke all on function treadle.check_names(text, text) from public;

create or replace function treadle.lane_of(
  p_queue         text,
  p_type          text,
  p_capabilities  text[],
  p_agent         text,
  p_ageing        bigint
)
returns integer
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_needs text[];
  v_lane  integer;
begin
  v_needs := case
    when coalesce(cardinality(p_capabilities), 0) = 0 then '{}'
    else array(select distinct needs.name from unnest(p_capabilities) as needs (name) order by 1)
  end;

  loop
    select lanes.id
    into v_lane
    from treadle.lanes
    where
      lanes.queue = p_queue
      and lanes.type = p_type
      and lanes.capabilities = v_needs
      and lanes.agent_id is not distinct from p_agent
      and lanes.ageing = p_ageing;

    if found then
      return v_lane;
    end if;

    perform treadle.check_names(p_queue, p_type);

    insert into treadle.lanes (queue, type, capabilities, agent_id, ageing)
    values (p_queue, p_type, v_needs, p_agent, p_ageing)
    on conflict do nothing
    returning lanes.id into v_lane;

    if found then
      return v_lane;
    end if;
  end loop;
end;
$$;

comment on function treadle.lane_of(text, text, text[], text, bigint) is
'Internal: finds or makes the lane that a task belongs to.';

revoke all on function treadle.lane_of(text, text, text[], text, bigint) from public;

create or replace function treadle.open_lanes(
  p_agent   treadle.agents,
  p_queues  text[],
  p_types   text[],
  p_now     timestamptz,
  out lanes   integer[],
  out shifts  bigint[]
)
language plpgsql
stable
set search_path = ''
as $$
declare
  v_ms      bigint := treadle.rank_ms(p_now);
  v_unknown text;
begin
  select array_agg(lane.id), array_agg(treadle.shift_at(lane.ageing, v_ms))
  into lanes, shifts
  from treadle.lanes as lane
  inner join treadle.queues on lane.queue = queues.name
  where
    lane.queue = any (p_queues)
    and queues.paused_at is null
    and (p_types is null or lane.type = any (p_types))
    and lane.capabilities <@ p_agent.capabilities
    and (lane.agent_id is null or lane.agent_id = p_agent.id);

  if lanes is null then
    select given.name
    into v_unknown
    from unnest(p_queues) as given (name)
    where not exists (select from treadle.queues where queues.name = given.name)
    limit 1;
    if found then
      perform treadle.check_names(v_unknown, null);
    end if;
  end if;
end;
$$;

comment on function treadle.open_lanes(treadle.agents, text[], text[], timestamptz) is
'Internal: lanes that an agent may claim from, with the shift that makes their ranks comparable.';

revoke all on function treadle.open_lanes(treadle.agents, text[], text[], timestamptz) from public;

create or replace function treadle.place_task(p_task treadle.tasks, p_ageing_rate numeric)
returns treadle.tasks
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_task   treadle.tasks := p_task;
  v_ageing bigint := round(coalesce(p_task.ageing_rate, p_ageing_rate) * 1000000);
begin
  v_task.lane_id := treadle.lane_of(
    v_task.queue, v_task.type, v_task.capabilities, v_task.assigned_agent, v_ageing
  );
  v_task.rank := v_task.priority * 1000000
    + treadle.rank_shift(v_ageing, greatest(v_task.created_at, v_task.run_at));
  return v_task;
end;
$$;

comment on function treadle.place_task(treadle.tasks, numeric) is
'Internal: finds the lane of a task and computes its rank.';

revoke all on function treadle.place_task(treadle.tasks, numeric) from public;

create or replace function treadle.rank_ms(p_at timestamptz)
returns bigint
language sql
immutable
parallel safe
as $$
  select ((extract(epoch from p_at) - 1735689600) * 1000)::bigint
$$;

comment on function treadle.rank_ms(timestamptz) is
'Internal: a moment in milliseconds since 2025-01-01 UTC.';

revoke all on function treadle.rank_ms(timestamptz) from public;
grant execute on function treadle.rank_ms(timestamptz) to treadle_observer, treadle_operator;

create or replace function treadle.rank_shift(p_ageing bigint, p_at timestamptz)
returns bigint
language sql
immutable
parallel safe
as $$
  select treadle.shift_at(p_ageing, treadle.rank_ms(p_at))
$$;

comment on function treadle.rank_shift(bigint, timestamptz) is
'Internal: millionths of a point gained between 2025-01-01 UTC and a moment, at a rate a minute.';

revoke all on function treadle.rank_shift(bigint, timestamptz) from public;
grant execute on function treadle.rank_shift(bigint, timestamptz) to
treadle_observer, treadle_operator;

create or replace function treadle.shift_at(p_ageing bigint, p_ms bigint)
returns bigint
language sql
immutable
parallel safe
as $$
  select p_ageing * (p_ms / 60000) + p_ageing * (p_ms % 60000) / 60000
$$;

comment on function treadle.shift_at(bigint, bigint) is
'Internal: millionths of a point gained in so many milliseconds, at a rate a minute.';

revoke all on function treadle.shift_at(bigint, bigint) from public;
grant execute on function treadle.shift_at(bigint, bigint) to treadle_observer, treadle_operator;

create or replace function treadle.check_settings(p_settings jsonb, p_known text[])
returns void
language plpgsql
stable
set search_path = ''
as $$
declare
  v_other text;
begin
  if jsonb_typeof(p_settings) is distinct from 'object' then
    perform treadle.refuse(
      'settings must be a json object', jsonb_build_object('argument', 'settings')
    );
  end if;

  select keys.name
  into v_other
  from jsonb_object_keys(p_settings) as keys (name)
  where keys.name <> all (p_known)
  limit 1;
  if found then
    perform treadle.refuse(
      format('unknown setting %s', left(quote_literal(v_other), 100)),
      jsonb_build_object('argument', left(v_other, 200)),
      'Settings: ' || array_to_string(p_known, ', ')
    );
  end if;

  if p_settings ? 'retry' then
    perform treadle.check_retry(p_settings -> 'retry');
  end if;
end;
$$;

comment on function treadle.check_settings(jsonb, text[]) is
'Internal: refuses settings that a queue or a type does not have.';

revoke all on function treadle.check_settings(jsonb, text[]) from public;

create or replace function treadle.define_queue(p_name text, p_settings jsonb default '{}')
returns void
language plpgsql
volatile
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  c_settings constant text[] := array[
    'priority', 'max_attempts', 'timeout_s', 'ageing_rate', 'retry', 'max_spec_bytes', 'audit'
  ];
  v_old treadle.queues;
  v_new treadle.queues;
begin
  perform treadle.check_settings(p_settings, c_settings);
  insert into treadle.queues (name) values (p_name) on conflict (name) do nothing;
  select queues.* into v_old from treadle.queues where queues.name = p_name for no key update;
  v_new := jsonb_populate_record(v_old, p_settings);

  update treadle.queues
  set
    priority = v_new.priority,
    max_attempts = v_new.max_attempts,
    timeout_s = v_new.timeout_s,
    ageing_rate = v_new.ageing_rate,
    retry = v_new.retry,
    max_spec_bytes = v_new.max_spec_bytes,
    audit = v_new.audit
  where queues.name = p_name and v_new is distinct from v_old;
exception
  when check_violation or not_null_violation or data_exception then
    perform treadle.refuse(
      format('queue %s cannot be defined so: %s', left(quote_nullable(p_name), 60), sqlerrm),
      jsonb_build_object('argument', 'queue'),
      'A name has 1 to 48 of a-z 0-9 _ . - and settings stay in range: priority 0-100, '
      'max_attempts 1-1000, ageing_rate 0-1000, audit compact or full.'
    );
end;
$$;

comment on function treadle.define_queue(text, jsonb) is
'Make or change a queue: its defaults for tasks, its size cap, its audit level.';

revoke all on function treadle.define_queue(text, jsonb) from public;
grant execute on function treadle.define_queue(text, jsonb) to treadle_operator;

create or replace function treadle.mark_idle(p_queues text[])
returns void
language plpgsql
volatile
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
begin
  if (
    select count(*)
    from treadle.idle_queues
    where
      idle_queues.queue = any (p_queues)
      and idle_queues.idle_until > v_now + interval '15 seconds'
  ) = cardinality(p_queues) then
    return;
  end if;

  insert into treadle.idle_queues (queue, idle_until)
  select distinct given.queue, v_now + interval '30 seconds'
  from unnest(p_queues) as given (queue)
  order by given.queue
  on conflict (queue) do update set idle_until = excluded.idle_until;
end;
$$;

comment on function treadle.mark_idle(text[]) is
'Internal: producers notify the queues that are marked here.';

revoke all on function treadle.mark_idle(text[]) from public;

create or replace function treadle.pause_queue(
  p_name    text,
  p_reason  text default null,
  p_actor   text default null
)
returns void
language plpgsql
volatile
security definer
set search_path = ''
as $$
begin
  update treadle.queues
  set
    paused_at = coalesce(queues.paused_at, treadle.clock()),
    paused_by = coalesce(p_actor, session_user),
    paused_reason = p_reason
  where queues.name = p_name;
  if not found then
    perform treadle.check_names(p_name, null);
  end if;

  insert into treadle.events (at, kind, queue, actor, data)
  values (
    treadle.clock(), 'queue.paused', p_name, coalesce(p_actor, session_user),
    jsonb_build_object('reason', p_reason)
  );
end;
$$;

comment on function treadle.pause_queue(text, text, text) is 'Stop claims from a queue.';

revoke all on function treadle.pause_queue(text, text, text) from public;
grant execute on function treadle.pause_queue(text, text, text) to treadle_operator;

create or replace function treadle.resume_queue(p_name text, p_actor text default null)
returns void
language plpgsql
volatile
security definer
set search_path = ''
as $$
begin
  update treadle.queues
  set paused_at = null, paused_by = null, paused_reason = null
  where queues.name = p_name;
  if not found then
    perform treadle.check_names(p_name, null);
  end if;

  insert into treadle.events (at, kind, queue, actor)
  values (treadle.clock(), 'queue.resumed', p_name, coalesce(p_actor, session_user));
  perform treadle.wake_queues(array[p_name]);
end;
$$;

comment on function treadle.resume_queue(text, text) is 'Let a paused queue go on.';

revoke all on function treadle.resume_queue(text, text) from public;
grant execute on function treadle.resume_queue(text, text) to treadle_operator;

create or replace function treadle.cancel_task(
  p_id      uuid,
  p_reason  text default null,
  p_actor   text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_verdict text;
begin
  select cancelled.verdict
  into v_verdict
  from treadle.cancel_tasks(array[p_id], p_reason, p_actor) as cancelled;
  if v_verdict in ('ended', 'unknown') then
    perform treadle.refuse_transition(p_id, 'cancelled', 'cancel_tasks');
  end if;
  return v_verdict;
end;
$$;

comment on function treadle.cancel_task(uuid, text, text) is
'Cancel one task, with a reason that is kept.';

revoke all on function treadle.cancel_task(uuid, text, text) from public;
grant execute on function treadle.cancel_task(uuid, text, text) to
treadle_producer, treadle_operator;

create or replace function treadle.cancel_tasks(
  p_ids     uuid[],
  p_reason  text default null,
  p_actor   text default null
)
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now   timestamptz := treadle.clock();
  v_actor text := coalesce(p_actor, session_user);
  v_held  treadle.tasks[];
begin
  perform treadle.keep_durable();
  v_held := array(
    select tasks
    from (select distinct given.id from unnest(p_ids) as given (id)) as wanted
    inner join treadle.tasks on wanted.id = tasks.id
    where tasks.completed_at is null
    order by tasks.id
    for no key update of tasks
  );

  insert into treadle.attempts (
    task_id, claim_token, attempt, agent_id, claimed_at, started_at, ended_at, outcome, reason
  )
  select
    held.id, held.claim_token, held.attempt, held.agent_id, held.claimed_at, held.started_at,
    v_now, 'cancelled', p_reason
  from unnest(v_held) as held
  where held.claim_token is not null;

  if found then
    perform pg_notify('task_cancelled', '');
  end if;

  update treadle.tasks
  set
    status = 'cancelled',
    outcome = 'cancelled',
    completed_at = v_now,
    failure_reason = p_reason,
    last_token = coalesce(tasks.claim_token, tasks.last_token),
    agent_id = null,
    claim_token = null,
    lease_until = null,
    retry_at = null
  from unnest(v_held) as held
  where tasks.id = held.id;

  insert into treadle.events (at, kind, task_id, queue, actor, data)
  select
    v_now, 'task.cancelled', held.id, held.queue, v_actor,
    jsonb_build_object('reason', p_reason, 'was', held.status)
  from unnest(v_held) as held;

  return query
  select given.id, case
    when held.id is not null then 'cancelled'
    when tasks.status = 'cancelled' then 'already'
    when tasks.id is not null then 'ended'
    else 'unknown'
  end
  from unnest(p_ids) with ordinality as given (id, at)
  left join unnest(v_held) as held on given.id = held.id
  left join treadle.tasks on given.id = tasks.id
  order by given.at;
end;
$$;

comment on function treadle.cancel_tasks(uuid[], text, text) is
'Cancel tasks in any state that is not an end; says of each what happened.';

revoke all on function treadle.cancel_tasks(uuid[], text, text) from public;
grant execute on function treadle.cancel_tasks(uuid[], text, text) to
treadle_producer, treadle_operator;

create or replace function treadle.check_retry(p_retry jsonb)
returns void
language plpgsql
stable
set search_path = ''
as $$
declare
  v_key   text;
  v_value jsonb;
  v_good  boolean;
begin
  if jsonb_typeof(p_retry) is distinct from 'object' then
    perform treadle.refuse(
      'a retry policy must be a json object',
      jsonb_build_object('argument', 'retry'),
      'For example {"strategy": "exponential", "initial_delay_s": 10}.'
    );
  end if;

  for v_key, v_value in select each.key, each.value from jsonb_each(p_retry) as each
  loop
    v_good := case
      when v_key = 'strategy' then
        v_value in ('"exponential"', '"fixed"', '"immediate"')
      when v_key in ('initial_delay_s', 'max_delay_s') then
        jsonb_typeof(v_value) = 'number' and v_value::numeric between 0 and 2592000
      when v_key = 'multiplier' then
        jsonb_typeof(v_value) = 'number' and v_value::numeric between 1 and 100
      when v_key in ('jitter', 'poison') then
        jsonb_typeof(v_value) = 'boolean'
      when v_key = 'max_rate_limits' then
        jsonb_typeof(v_value) = 'number' and v_value::numeric between 0 and 10000
      when v_key in ('retry_on', 'no_retry_on') then
        jsonb_typeof(v_value) = 'array' or (v_value = 'null' and v_key = 'retry_on')
      else false
    end;

    if not coalesce(v_good, false) then
      perform treadle.refuse(
        format('retry policy: %s cannot be %s', v_key, left(v_value::text, 100)),
        jsonb_build_object('argument', 'retry', 'key', v_key),
        'Keys: strategy (exponential, fixed, immediate), initial_delay_s, multiplier, max_delay_s, '
        'jitter, retry_on, no_retry_on, max_rate_limits, poison. Delays are seconds, up to 30 days.'
      );
    end if;
  end loop;
end;
$$;

comment on function treadle.check_retry(jsonb) is 'Internal: refuses a malformed retry policy.';

revoke all on function treadle.check_retry(jsonb) from public;

create or replace function treadle.check_specs(p_specs jsonb[], p_max_bytes integer)
returns void
language plpgsql
stable
set search_path = ''
as $$
declare
  c_long constant jsonpath :=
    '$.** ? (@ > 1e300 || @ < -1e300 || (@ > 0 && @ < 1e-300) || (@ < 0 && @ > -1e-300))';
  v_at   bigint;
  v_spec jsonb;
begin
  select given.at, given.spec
  into v_at, v_spec
  from unnest(p_specs) with ordinality as given (spec, at)
  where
    jsonb_typeof(given.spec) is distinct from 'object'
    or pg_column_size(given.spec) > p_max_bytes
    or (pg_column_size(given.spec) > 128 and jsonb_path_exists(given.spec, '$.**{65}'))
    or case
      when pg_column_size(given.spec) <= 8192 then octet_length(given.spec::text) > p_max_bytes
      else jsonb_path_exists(given.spec, c_long)
    end
  order by given.at
  limit 1;

  if not found then
    return;
  end if;

  if jsonb_typeof(v_spec) is distinct from 'object' then
    perform treadle.refuse(
      format('the spec must be a json object, not %s', coalesce(jsonb_typeof(v_spec), 'missing')),
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Pass the arguments of the handler by name: {"prompt": "..."}.'
    );
  elsif pg_column_size(v_spec) > p_max_bytes then
    perform treadle.refuse(
      format('the spec has %s bytes, %s are allowed', pg_column_size(v_spec), p_max_bytes),
      jsonb_build_object(
        'argument', 'spec', 'index', v_at - 1,
        'bytes', pg_column_size(v_spec), 'max_bytes', p_max_bytes
      ),
      'Store the data elsewhere and pass a reference, or raise max_spec_bytes of the queue.',
      'TR002'
    );
  elsif not jsonb_path_exists(v_spec, '$.**{65}') then
    perform treadle.refuse(
      'the spec has numbers that are too long to be sent',
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Pass them as text, or keep them within 1e300.'
    );
  else
    perform treadle.refuse(
      'the spec is nested more than 64 levels deep',
      jsonb_build_object('argument', 'spec', 'index', v_at - 1),
      'Flatten it, or pass the deep part as text.'
    );
  end if;
end;
$$;

comment on function treadle.check_specs(jsonb[], integer) is
'Internal: refuses payloads that are malformed, too large or too deep.';

revoke all on function treadle.check_specs(jsonb[], integer) from public;

create or replace function treadle.check_task(p_task treadle.tasks, p_now timestamptz)
returns void
language plpgsql
stable
set search_path = ''
as $$
declare
  v_wrong text;
  v_must  text;
begin
  select rules.name, rules.must
  into v_wrong, v_must
  from (
    values
    ('priority', p_task.priority between 0 and 100, 'be 0 (critical) to 100 (background)'),
    ('max_attempts', p_task.max_attempts between 1 and 1000, 'be 1 to 1000'),
    ('timeout_s', p_task.timeout_s > 0 and p_task.timeout_s <= 31536000, 'be above 0'),
    ('ageing_rate', p_task.ageing_rate between 0 and 1000, 'be 0 to 1000 points a minute'),
    ('max_cost_usd', p_task.max_cost_usd >= 0 and p_task.max_cost_usd < 'Infinity', 'be 0 or more'),
    (
      'run_at',
      isfinite(p_task.run_at) and p_task.run_at < p_now + interval '10 years',
      'be a moment within ten years'
    ),
    ('deadline_at', isfinite(p_task.deadline_at), 'be a finite moment'),
    (
      'idempotency_key',
      octet_length(p_task.idempotency_key) between 1 and 200,
      'have 1 to 200 bytes'
    ),
    ('consumer', octet_length(p_task.consumer) between 1 and 200, 'have 1 to 200 bytes'),
    ('title', octet_length(p_task.title) <= 1000, 'have at most 1000 bytes'),
    (
      'capabilities',
      cardinality(p_task.capabilities) <= 50 and array_position(p_task.capabilities, null) is null,
      'be at most 50 names'
    )
  ) as rules (name, good, must)
  -- An empty value is no value: the rule does not apply.
  where not rules.good
  limit 1;

  if found then
    perform treadle.refuse(
      format('%s must %s', v_wrong, v_must),
      jsonb_build_object('argument', v_wrong),
      format('Leave %s out for the default.', v_wrong)
    );
  end if;

  if p_task.retry is not null then
    perform treadle.check_retry(p_task.retry);
  end if;
end;
$$;

comment on function treadle.check_task(treadle.tasks, timestamptz) is
'Internal: refuses a task whose values are out of range.';

revoke all on function treadle.check_task(treadle.tasks, timestamptz) from public;

create or replace function treadle.content_key(p_type text, p_spec jsonb)
returns text
language sql
immutable
parallel safe
set search_path = ''
as $$
  select 'content:' || encode(
    sha256(convert_to(coalesce(p_type, '') || ' ' || coalesce(p_spec, '{}')::text, 'UTF8')), 'hex'
  )
$$;

comment on function treadle.content_key(text, jsonb) is
'The key that enqueue_task makes from type and spec with p_dedupe.';

revoke all on function treadle.content_key(text, jsonb) from public;
grant execute on function treadle.content_key(text, jsonb) to treadle_producer, treadle_worker;

create or replace function treadle.effective_priority(p_id uuid)
returns numeric
language plpgsql
stable
security definer
set search_path = ''
as $$
declare
  v_value numeric;
begin
  select (tasks.rank - treadle.rank_shift(lanes.ageing, treadle.clock())) / 1000000.0
  into v_value
  from treadle.tasks
  inner join treadle.lanes on tasks.lane_id = lanes.id
  where tasks.id = p_id;
  if not found then
    perform treadle.refuse_transition(p_id, 'ready');
  end if;
  return v_value;
end;
$$;

comment on function treadle.effective_priority(uuid) is
'Priority of a task now: its base less its age times the rate; lower is claimed first.';

revoke all on function treadle.effective_priority(uuid) from public;
grant execute on function treadle.effective_priority(uuid) to
treadle_producer, treadle_worker, treadle_observer;

create or replace function treadle.enqueue_batch(
  p_queue    text,
  p_type     text,
  p_specs    jsonb[],
  p_options  jsonb default '{}',
  p_keys     text[] default null
)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_keys text[] := p_keys;
  v_long text;
begin
  perform treadle.keep_durable();

  if (p_options -> 'dedupe') = 'true' then
    v_keys := array(
      select coalesce(given.key, treadle.content_key(p_type, given.spec))
      from unnest(p_specs, p_keys) with ordinality as given (spec, key, at)
      order by given.at
    );
  end if;

  if v_keys is not null then
    perform treadle.check_pairs(
      array_fill(null::uuid, array[cardinality(p_specs)]), null, 'keys', cardinality(v_keys)
    );
    select given.key
    into v_long
    from unnest(v_keys) as given (key)
    where octet_length(given.key) not between 1 and 200
    limit 1;
    if found then
      perform treadle.refuse(
        format('idempotency_key must have 1 to 200 bytes, not %s', octet_length(v_long)),
        jsonb_build_object('argument', 'idempotency_key'),
        'Hash a long key, or leave it out.'
      );
    end if;
  end if;

  return query
  select made.id, made.created
  from treadle.insert_tasks(
    treadle.prepare_task(
      p_options || jsonb_build_object('queue', p_queue, 'type', p_type), treadle.clock()
    ),
    p_specs,
    v_keys
  ) as made;
end;
$$;

comment on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) is
'Enqueue many tasks of one queue, type and set of options; one id for each spec, in order.';

revoke all on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) from public;
grant execute on function treadle.enqueue_batch(text, text, jsonb[], jsonb, text[]) to
treadle_producer, treadle_worker;

create or replace function treadle.enqueue_task(
  p_queue            text,
  p_type             text,
  p_spec             jsonb default '{}',
  p_priority         integer default null,
  p_run_at           timestamptz default null,
  p_delay_s          double precision default null,
  p_idempotency_key  text default null,
  p_dedupe           boolean default false,
  p_options          jsonb default '{}'
)
returns uuid
language sql
volatile
security definer
set search_path = ''
as $$
  select made.id
  from treadle.enqueue_batch(
    p_queue,
    p_type,
    array[p_spec],
    p_options || jsonb_strip_nulls(
      jsonb_build_object(
        'priority', p_priority, 'run_at', p_run_at, 'delay_s', p_delay_s::text, 'dedupe', p_dedupe
      )
    ),
    case when p_idempotency_key is not null then array[p_idempotency_key] end
  ) as made
$$;

comment on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) is 'Enqueue one task in the caller''s transaction; further settings go into p_options.';

revoke all on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) from public;
grant execute on function treadle.enqueue_task(
  text, text, jsonb, integer, timestamptz, double precision, text, boolean, jsonb
) to treadle_producer, treadle_worker;

create or replace function treadle.enqueue_tasks(p_tasks jsonb)
returns table (id uuid, created boolean)
language plpgsql
volatile
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  v_kind    record;
  v_places  bigint[] := '{}';
  v_ids     uuid[] := '{}';
  v_created boolean[] := '{}';
begin
  if jsonb_typeof(p_tasks) is distinct from 'array' or jsonb_path_exists(
    p_tasks, '$[*] ? (@.type() != "object")'
  ) then
    perform treadle.refuse(
      'the tasks must be a json array of objects',
      jsonb_build_object('argument', 'tasks'),
      'For example [{"type": "code", "spec": {"prompt": "..."}}].'
    );
  end if;

  for v_kind in
    select
      given.task - array['spec', 'idempotency_key'] as options,
      array_agg(coalesce(given.task -> 'spec', '{}') order by given.at) as specs,
      array_agg(given.task ->> 'idempotency_key' order by given.at) as keys,
      array_agg(given.at order by given.at) as places
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
    group by given.task - array['spec', 'idempotency_key']
    order by min(given.at)
  loop
    select
      v_places || v_kind.places,
      v_ids || array_agg(made.id order by made.at),
      v_created || array_agg(made.created order by made.at)
    into v_places, v_ids, v_created
    from treadle.enqueue_batch(
      coalesce(v_kind.options ->> 'queue', 'default'),
      v_kind.options ->> 'type',
      v_kind.specs,
      v_kind.options,
      case when array_remove(v_kind.keys, null) <> '{}' then v_kind.keys end
    ) with ordinality as made (id, created, at);
  end loop;

  return query
  select made.id, made.created
  from unnest(v_places, v_ids, v_created) as made (place, id, created)
  order by made.place;
end;
$$;

comment on function treadle.enqueue_tasks(jsonb) is
'Enqueue any tasks given as a json array; one id for each, in order.';

revoke all on function treadle.enqueue_tasks(jsonb) from public;
grant execute on function treadle.enqueue_tasks(jsonb) to treadle_producer, treadle_worker;

create or replace function treadle.insert_tasks(
  p_kind   treadle.tasks,
  p_specs  jsonb[],
  p_keys   text[] default null
)
returns table (id uuid, created boolean)
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_ids  uuid[] := array(select treadle.uuidv7() from unnest(p_specs));
  v_held uuid[];
  v_todo bigint[];
begin
  perform treadle.check_specs(
    p_specs,
    (select queues.max_spec_bytes from treadle.queues where queues.name = p_kind.queue)
  );

  loop
    insert into treadle.tasks (
      id, rank, created_at, run_at, deadline_at, timeout_s, parent_id, dag_id, project_id, lane_id,
      priority, max_attempts, max_cost_usd, ageing_rate, status, queue, type, consumer,
      assigned_agent, capabilities, tags, title, created_by, source, source_job, external_ref,
      notes, retry, validation, spec, idempotency_key
    )
    select
      given.id, p_kind.rank, p_kind.created_at, p_kind.run_at, p_kind.deadline_at, p_kind.timeout_s,
      p_kind.parent_id, p_kind.dag_id, p_kind.project_id, p_kind.lane_id, p_kind.priority,
      p_kind.max_attempts, p_kind.max_cost_usd, p_kind.ageing_rate, p_kind.status, p_kind.queue,
      p_kind.type, p_kind.consumer, p_kind.assigned_agent, p_kind.capabilities, p_kind.tags,
      p_kind.title, coalesce(p_kind.created_by, session_user), p_kind.source, p_kind.source_job,
      p_kind.external_ref, p_kind.notes, p_kind.retry, p_kind.validation, given.spec, given.key
    from unnest(v_ids, p_specs, p_keys) with ordinality as given (id, spec, key, at)
    where v_todo is null or given.at = any (v_todo)
    on conflict (idempotency_key, project_id)
    where idempotency_key is not null and status not in ('dead_lettered', 'cancelled')
    do nothing;

    if p_keys is null then
      return query select made.id, true from unnest(v_ids) as made (id);
      return;
    end if;

    -- One probe of the key's index for each key: a join could be planned as a scan of them all.
    v_held := array(
      select
        (
          select tasks.id
          from treadle.tasks
          where
            tasks.idempotency_key = given.key
            and tasks.project_id is not distinct from p_kind.project_id
            and tasks.status not in ('dead_lettered', 'cancelled')
          limit 1
        )
      from unnest(p_keys) with ordinality as given (key, at)
      order by given.at
    );

    -- The task in the way may have been cancelled since: its key is free, so try again.
    v_todo := array(
      select given.at
      from unnest(p_keys, v_held) with ordinality as given (key, held, at)
      where given.key is not null and given.held is null
    );
    exit when cardinality(v_todo) = 0;
  end loop;

  return query
  select coalesce(given.held, given.id), coalesce(given.held = given.id, true)
  from unnest(v_ids, v_held) with ordinality as given (id, held, at)
  order by given.at;
end;
$$;

comment on function treadle.insert_tasks(treadle.tasks, jsonb[], text[]) is
'Internal: stores tasks that share all but their spec and their key.';

revoke all on function treadle.insert_tasks(treadle.tasks, jsonb[], text[]) from public;

create or replace function treadle.next_due_at()
returns timestamptz
language sql
stable
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  select least(
    (
      select tasks.retry_at
      from treadle.tasks
      where tasks.status = 'retrying'
      order by tasks.retry_at
      limit 1
    ),
    (
      select tasks.run_at
      from treadle.tasks
      where tasks.status = 'pending' and tasks.blocked_count = 0 and tasks.run_at is not null
      order by tasks.run_at
      limit 1
    )
  )
$$;

comment on function treadle.next_due_at() is 'The earliest retry or run time of a waiting task.';

revoke all on function treadle.next_due_at() from public;
grant execute on function treadle.next_due_at() to treadle_worker;

create or replace function treadle.prepare_task(p_options jsonb, p_now timestamptz)
returns treadle.tasks
language plpgsql
volatile
set search_path = ''
as $$
declare
  c_options constant text[] := array[
    'queue', 'type', 'priority', 'run_at', 'delay_s', 'hold', 'timeout_s', 'max_attempts',
    'ageing_rate', 'deadline_at', 'capabilities', 'assigned_agent', 'retry', 'validation',
    'consumer', 'title', 'tags', 'created_by', 'source', 'source_job', 'external_ref', 'notes',
    'parent_id', 'dag_id', 'project_id', 'max_cost_usd', 'dedupe', 'define'
  ];
  v_task  treadle.tasks;
  v_queue treadle.queues;
  v_type  treadle.task_types;
  v_hold  boolean;
  v_other text[];
begin
  if jsonb_typeof(p_options) is distinct from 'object' then
    perform treadle.refuse(
      'the options must be a json object', jsonb_build_object('argument', 'options')
    );
  end if;
  v_other := array(
    select keys.name from jsonb_object_keys(p_options) as keys (name)
    where keys.name <> all (c_options)
  );
  if cardinality(v_other) > 0 then
    perform treadle.refuse(
      format('unknown option %s', left(quote_literal(v_other[1]), 100)),
      jsonb_build_object('argument', left(v_other[1], 200)),
      'Options: ' || array_to_string(c_options, ', ')
    );
  end if;

  begin
    v_task := jsonb_populate_record(null::treadle.tasks, p_options);
    v_hold := (p_options ->> 'hold')::boolean;
    if p_options ? 'delay_s' then
      if not (p_options ->> 'delay_s')::float8 between 0 and 315360000 then
        raise data_exception using message = 'delay_s must be 0 or more seconds, up to ten years';
      end if;
      v_task.run_at := p_now + make_interval(secs => (p_options ->> 'delay_s')::float8);
    end if;
  exception
    when data_exception then
      perform treadle.refuse(
        sqlerrm,
        jsonb_build_object('argument', 'options'),
        'Check the type and range of each option.'
      );
  end;

  v_task.queue := coalesce(v_task.queue, 'default');
  if p_options ? 'define' and not treadle.are_names(v_task.queue, v_task.type) then
    perform treadle.declare_types(
      jsonb_build_object(v_task.type, p_options -> 'define'), array[v_task.queue]
    );
  end if;
  perform treadle.check_names(v_task.queue, v_task.type);
  select queues.* into v_queue from treadle.queues where queues.name = v_task.queue;
  select task_types.* into v_type from treadle.task_types where task_types.name = v_task.type;

  v_task.priority := coalesce(v_task.priority, v_type.priority, v_queue.priority, 50);
  v_task.max_attempts := coalesce(
    v_task.max_attempts, v_type.max_attempts, v_queue.max_attempts, 3
  );
  v_task.timeout_s := coalesce(v_task.timeout_s, v_type.timeout_s, v_queue.timeout_s);
  perform treadle.check_task(v_task, p_now);

  v_task.created_at := p_now;
  v_task.status := case
    when v_hold then 'created'
    when v_task.run_at > p_now then 'pending'
    else 'ready'
  end;
  return treadle.place_task(v_task, coalesce(v_type.ageing_rate, v_queue.ageing_rate, 0.1));
end;
$$;

comment on function treadle.prepare_task(jsonb, timestamptz) is
'Internal: checks the options of a new task and fills in the defaults, the lane and the rank.';

revoke all on function treadle.prepare_task(jsonb, timestamptz) from public;

create or replace function treadle.promote_tasks(
  p_limit  integer default 1000,
  p_skip   uuid[] default '{}'
)
returns table (id uuid, problem text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
  v_now  timestamptz := treadle.clock();
  v_rows tid[] := array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.status = 'retrying' and tasks.retry_at <= v_now and tasks.id <> all (p_skip)
    order by tasks.retry_at
    limit p_limit
    for update skip locked
  ) || array(
    select tasks.ctid
    from treadle.tasks
    where
      tasks.status = 'pending' and tasks.blocked_count = 0 and tasks.run_at <= v_now
      and tasks.id <> all (p_skip)
    order by tasks.run_at
    limit p_limit
    for update skip locked
  );
begin
  if v_rows = '{}' then
    return;
  end if;
  perform treadle.keep_durable();
  begin
    return query select moved.id, null from treadle.ready_rows(v_rows) as moved (id);
  exception when others then
    -- One of them is bad: each on its own, so that the rest go through.
    for v_at in 1..cardinality(v_rows) loop
      begin
        return query
        select moved.id, null from treadle.ready_rows(v_rows[v_at:v_at]) as moved (id);
      exception when others then
        return query
        select tasks.id, sqlerrm from treadle.tasks where tasks.ctid = v_rows[v_at];
      end;
    end loop;
  end;
end;
$$;

comment on function treadle.promote_tasks(integer, uuid[]) is
'Make due retries and due tasks claimable; returns their ids.';

revoke all on function treadle.promote_tasks(integer, uuid[]) from public;
grant execute on function treadle.promote_tasks(integer, uuid[]) to treadle_worker;

create or replace function treadle.read_results(p_ids uuid[])
returns table (id uuid, status text, output jsonb, failure_class text, failure_reason text)
language sql
stable
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
  select
    wanted.id, coalesce(tasks.status, 'unknown'), tasks.output, tasks.failure_class,
    tasks.failure_reason
  from unnest(p_ids) as wanted (id)
  left join treadle.tasks on wanted.id = tasks.id
  where tasks.id is null or tasks.completed_at is not null
$$;

comment on function treadle.read_results(uuid[]) is
'Status, output and failure of those of the tasks that have ended.';

revoke all on function treadle.read_results(uuid[]) from public;
grant execute on function treadle.read_results(uuid[]) to treadle_producer, treadle_worker;

create or replace function treadle.ready_rows(p_rows tid[])
returns setof uuid
language plpgsql
volatile
set search_path = ''
set jit = off
set enable_seqscan = off
as $$
declare
  v_rows   tid[];
  v_ids    uuid[];
  v_queues text[];
begin
  with moved as (
    update treadle.tasks
    set status = 'ready', retry_at = null
    where tasks.ctid = any (p_rows)
    returning tasks.ctid, tasks.id, tasks.queue
  )

  select array_agg(moved.ctid), array_agg(moved.id), array_agg(distinct moved.queue)
  into v_rows, v_ids, v_queues
  from moved;

  perform treadle.wake_queues(v_queues);
  perform treadle.audit_tasks(v_rows, 'ready', null);
  return query select moved.id from unnest(v_ids) as moved (id);
end;
$$;

comment on function treadle.ready_rows(tid[]) is 'Internal: moves tasks to ready.';

revoke all on function treadle.ready_rows(tid[]) from public;

create or replace function treadle.refuse_transition(
  p_id  uuid,
  p_to  text,
  p_by  text default null
)
returns void
language plpgsql
stable
set search_path = ''
as $$
declare
  v_status text;
begin
  select tasks.status into v_status from treadle.tasks where tasks.id = p_id;
  if not found then
    perform treadle.refuse(
      format('there is no task %s', coalesce(p_id::text, 'null')),
      jsonb_build_object('task_id', p_id),
      'List them: select * from treadle.task_details order by id desc limit 20',
      'TR201'
    );
  end if;

  perform treadle.refuse(
    format(
      'task %s is %s and cannot become %s%s', p_id, v_status, p_to, coalesce(' by ' || p_by, '')
    ),
    jsonb_build_object(
      'task_id', p_id, 'from', v_status, 'to', p_to,
      'allowed', (
        select coalesce(jsonb_agg(distinct transitions.to_status), '[]')
        from treadle.transitions
        where
          transitions.from_status = v_status
          and (p_by is null or transitions.by = p_by)
      )
    ),
    'See the view treadle.transitions for what is allowed.',
    'TR102'
  );
end;
$$;

comment on function treadle.refuse_transition(uuid, text, text) is
'Internal: raises with the state of a task and the states it may go to.';

revoke all on function treadle.refuse_transition(uuid, text, text) from public;

create or replace function treadle.restart_task(
  p_task     treadle.tasks,
  p_changes  jsonb,
  p_now      timestamptz
)
returns void
language plpgsql
volatile
set search_path = ''
as $$
declare
  v_spec jsonb := p_task.spec || coalesce(p_changes -> 'spec', '{}');
  v_new  treadle.tasks := treadle.prepare_task(
    jsonb_strip_nulls(
      jsonb_build_object(
        'queue', p_task.queue, 'type', p_task.type, 'priority', p_task.priority,
        'timeout_s', p_task.timeout_s, 'capabilities', p_task.capabilities,
        'assigned_agent', p_task.assigned_agent, 'ageing_rate', p_task.ageing_rate
      )
    )
    -- Not stripped: in a policy null has a meaning.
    || case
      when p_task.retry is null then '{}'
      else jsonb_build_object('retry', p_task.retry)
    end
    || (p_changes - 'spec'),
    p_task.created_at
  );
begin
  perform treadle.check_specs(
    array[v_spec],
    (select queues.max_spec_bytes from treadle.queues where queues.name = v_new.queue)
  );

  update treadle.tasks
  set
    status = 'ready',
    max_attempts = tasks.attempt + v_new.max_attempts,
    spec = v_spec,
    queue = v_new.queue,
    type = v_new.type,
    lane_id = v_new.lane_id,
    rank = v_new.rank,
    priority = v_new.priority,
    timeout_s = v_new.timeout_s,
    capabilities = v_new.capabilities,
    assigned_agent = v_new.assigned_agent,
    ageing_rate = v_new.ageing_rate,
    retry = v_new.retry,
    retry_at = null,
    run_at = null,
    completed_at = null,
    outcome = null,
    -- The result of the old round is not wanted any more.
    last_token = null
  where tasks.id = p_task.id;

  perform treadle.wake_queues(array[v_new.queue]);
exception
  when unique_violation then
    perform treadle.refuse(
      format('another task has the key %L of task %s now', p_task.idempotency_key, p_task.id),
      jsonb_build_object('task_id', p_task.id, 'idempotency_key', p_task.idempotency_key),
      'Let that one run, or cancel it first.',
      'TR102'
    );
end;
$$;

comment on function treadle.restart_task(treadle.tasks, jsonb, timestamptz) is
'Internal: gives a task another round.';

revoke all on function treadle.restart_task(treadle.tasks, jsonb, timestamptz) from public;

create or replace function treadle.retry_task(
  p_id          uuid,
  p_resolution  text default 'retry',
  p_changes     jsonb default '{}',
  p_reviewer    text default null,
  p_note        text default null
)
returns text
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  c_changes constant text[] := array[
    'spec', 'queue', 'type', 'priority', 'max_attempts', 'timeout_s', 'ageing_rate',
    'capabilities', 'assigned_agent', 'retry'
  ];
  v_now  timestamptz := treadle.clock();
  v_task treadle.tasks;
  v_to   text := case p_resolution when 'cancel' then 'cancelled' else 'ready' end;
begin
  if p_resolution is null or p_resolution not in ('retry', 'cancel', 'modify_and_retry')
    or (p_resolution = 'modify_and_retry') <> (coalesce(p_changes, '{}') <> '{}') then
    perform treadle.refuse(
      format('resolution %L does not go with changes %s', p_resolution, left(p_changes::text, 60)),
      jsonb_build_object('argument', 'resolution'),
      'Use retry or cancel without changes, or modify_and_retry with some.'
    );
  end if;

  perform treadle.check_settings(coalesce(p_changes, '{}'), c_changes);
  perform treadle.keep_durable();
  select tasks.* into v_task from treadle.tasks where tasks.id = p_id for no key update;
  if not found or not exists (
    select from treadle.transitions
    where
      transitions.from_status = v_task.status and transitions.to_status = v_to
      and transitions.by = 'retry_task'
  ) then
    perform treadle.refuse_transition(p_id, v_to, 'retry_task');
  end if;

  update treadle.dead_letters
  set
    resolved_at = v_now,
    resolution = p_resolution,
    reviewer = coalesce(p_reviewer, session_user),
    note = p_note,
    changes = nullif(p_changes, '{}')
  where dead_letters.task_id = p_id and dead_letters.resolution is null;
  insert into treadle.events (at, kind, task_id, queue, actor, data)
  values (
    v_now, 'task.' || p_resolution, p_id, v_task.queue, coalesce(p_reviewer, session_user),
    jsonb_build_object('was', v_task.status, 'note', p_note, 'changes', p_changes)
  );

  if v_to = 'cancelled' then
    update treadle.tasks
    set status = 'cancelled', outcome = 'cancelled', completed_at = v_now
    where tasks.id = p_id;
  else
    perform treadle.restart_task(v_task, coalesce(p_changes, '{}'), v_now);
  end if;
  return v_to;
end;
$$;

comment on function treadle.retry_task(uuid, text, jsonb, text, text) is
'Resolve a dead letter (retry, cancel, modify_and_retry), revive a cancelled task, or retry now.';

revoke all on function treadle.retry_task(uuid, text, jsonb, text, text) from public;
grant execute on function treadle.retry_task(uuid, text, jsonb, text, text) to treadle_operator;

create or replace function treadle.take_results(
  p_consumer  text,
  p_limit     integer default 100,
  p_token     uuid default null
)
returns table (
  id uuid, queue text, type text, spec jsonb, output jsonb, decision_report jsonb,
  completed_by text, completed_at timestamptz
)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  v_token uuid := coalesce(p_token, gen_random_uuid());
begin
  if p_consumer is null or p_limit is null or p_limit not between 1 and 10000 then
    perform treadle.refuse(
      'take_results needs a consumer, and a limit of 1 to 10000',
      jsonb_build_object('argument', 'limit')
    );
  end if;

  if p_token is null or not exists (
    select from treadle.tasks
    where
      tasks.consumer = p_consumer and tasks.status = 'completed'
      and tasks.consumed_token = p_token
  ) then
    perform treadle.keep_durable();
    update treadle.tasks
    set consumed_at = treadle.clock(), consumed_token = v_token
    where tasks.ctid = any (
      array(
        select wanted.ctid
        from treadle.tasks as wanted
        where
          wanted.consumer = p_consumer and wanted.status = 'completed'
          and wanted.consumed_token is null
        order by wanted.completed_at
        limit p_limit
        for update skip locked
      )
    );
  end if;

  return query
  select
    tasks.id, tasks.queue, tasks.type, tasks.spec, tasks.output, tasks.decision_report,
    tasks.completed_by, tasks.completed_at
  from treadle.tasks
  where
    tasks.consumer = p_consumer and tasks.status = 'completed' and tasks.consumed_token = v_token
  order by tasks.completed_at, tasks.id;
end;
$$;

comment on function treadle.take_results(text, integer, uuid) is
'Take completed results of tasks enqueued for this consumer; each is handed out once.';

revoke all on function treadle.take_results(text, integer, uuid) from public;
grant execute on function treadle.take_results(text, integer, uuid) to treadle_producer;

create or replace function treadle.tg_tasks__place()
returns trigger
language plpgsql
volatile
security definer
set search_path = ''
as $$
declare
  v_now timestamptz := treadle.clock();
begin
  perform treadle.check_task(new, v_now);
  perform treadle.check_names(new.queue, new.type);
  perform treadle.check_specs(
    array[new.spec],
    (select queues.max_spec_bytes from treadle.queues where queues.name = new.queue)
  );
  if new.status = 'ready' and new.run_at > v_now then
    new.status := 'pending';
  end if;
  return treadle.place_task(
    new,
    (
      select coalesce(task_types.ageing_rate, queues.ageing_rate, 0.1)
      from treadle.queues
      cross join treadle.task_types
      where queues.name = new.queue and task_types.name = new.type
    )
  );
end;
$$;

comment on function treadle.tg_tasks__place() is 'Trigger: fills lane and rank of a plain insert.';

revoke all on function treadle.tg_tasks__place() from public;

create or replace function treadle.tg_tasks__wake()
returns trigger
language plpgsql
volatile
security definer
set search_path = ''
as $$
begin
  if exists (
    select from treadle.idle_queues where idle_queues.idle_until > clock_timestamp()
  ) then
    perform treadle.wake_queues(
      array(select distinct added.queue from added where added.status = 'ready')
    );
  end if;
  perform treadle.wake_promoter(min(added.run_at)) from added where added.status = 'pending';
  return null;
end;
$$;

comment on function treadle.tg_tasks__wake() is 'Trigger: notifies idle workers of new tasks.';

revoke all on function treadle.tg_tasks__wake() from public;

create or replace function treadle.unhold_tasks(p_ids uuid[])
returns table (id uuid, verdict text)
language plpgsql
volatile
security definer
set search_path = ''
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := treadle.clock();
  v_rows   tid[];
  v_queues text[];
  v_due_at timestamptz;
begin
  perform treadle.keep_durable();

  with held as materialized (
    select tasks.id
    from unnest(p_ids) as wanted (id)
    inner join treadle.tasks on wanted.id = tasks.id
    where tasks.status = 'created'
    order by tasks.id
    for no key update of tasks
  ),

  freed as (
    update treadle.tasks
    set status = case when tasks.run_at > v_now then 'pending' else 'ready' end
    -- Not by ctid: a row that changed while it was waited for would not be found there.
    where tasks.id = any (array(select held.id from held))
    returning tasks.ctid, tasks.queue, tasks.status, tasks.run_at
  )

  select
    array_agg(freed.ctid),
    array_agg(distinct freed.queue) filter (where freed.status = 'ready'),
    min(freed.run_at) filter (where freed.status = 'pending')
  into v_rows, v_queues, v_due_at
  from freed;

  perform treadle.wake_queues(v_queues);
  perform treadle.wake_promoter(v_due_at);
  perform treadle.audit_tasks(v_rows, 'unheld', null);
  return query
  select wanted.id, coalesce(tasks.status, 'unknown')
  from unnest(p_ids) with ordinality as wanted (id, at)
  left join treadle.tasks on wanted.id = tasks.id
  order by wanted.at;
end;
$$;

comment on function treadle.unhold_tasks(uuid[]) is
'Release tasks that were enqueued with hold; says of each the state it is in now.';

revoke all on function treadle.unhold_tasks(uuid[]) from public;
grant execute on function treadle.unhold_tasks(uuid[]) to treadle_producer, treadle_operator;

create or replace function treadle.wake_promoter(p_due_at timestamptz)
returns void
language plpgsql
volatile
set search_path = ''
as $$
begin
  if p_due_at < treadle.clock() + interval '5 seconds' then
    perform pg_notify('task_due', '');
  end if;
end;
$$;

comment on function treadle.wake_promoter(timestamptz) is
'Internal: notifies task_due when a task falls due within five seconds.';

revoke all on function treadle.wake_promoter(timestamptz) from public;

create or replace function treadle.wake_queues(p_queues text[])
returns void
language plpgsql
volatile
set search_path = ''
as $$
begin
  perform pg_notify('task_ready.' || idle_queues.queue, '')
  from treadle.idle_queues
  where idle_queues.queue = any (p_queues) and idle_queues.idle_until > clock_timestamp();
end;
$$;

comment on function treadle.wake_queues(text[]) is
'Internal: notifies the channel of each queue on which a worker waits.';

revoke all on function treadle.wake_queues(text[]) from public;

create or replace function treadle.declare_types(p_types jsonb, p_queues text[] default '{}')
returns void
language plpgsql
volatile
security definer
set search_path = ''
as $$
begin
  if jsonb_typeof(p_types) is distinct from 'object' then
    perform treadle.refuse(
      'the types must be a json object',
      jsonb_build_object('argument', 'types'),
      'For example {"crawl": {"timeout_s": 600}}.'
    );
  end if;

  perform treadle.define_queue(given.name)
  from (select distinct wanted.name from unnest(p_queues) as wanted (name)) as given
  where not exists (select from treadle.queues where queues.name = given.name)
  order by given.name;

  perform treadle.define_type(given.name, given.settings)
  from (
    select each.key as name, each.value as settings from jsonb_each(p_types) as each
    order by each.key
  ) as given;
end;
$$;

comment on function treadle.declare_types(jsonb, text[]) is
'Make the types {"name": {settings}} and queues of an application known.';

revoke all on function treadle.declare_types(jsonb, text[]) from public;
grant execute on function treadle.declare_types(jsonb, text[]) to
treadle_producer, treadle_worker;

create or replace function treadle.define_type(p_name text, p_settings jsonb default '{}')
returns void
language plpgsql
volatile
security definer
set search_path = ''
as $$
#variable_conflict use_column
declare
  c_settings constant text[] := array[
    'description', 'priority', 'max_attempts', 'timeout_s', 'ageing_rate', 'retry'
  ];
  v_old treadle.task_types;
  v_new treadle.task_types;
begin
  perform treadle.check_settings(p_settings, c_settings);
  insert into treadle.task_types (name) values (p_name) on conflict (name) do nothing;
  select task_types.* into v_old from treadle.task_types where task_types.name = p_name;
  v_new := jsonb_populate_record(v_old, p_settings);

  update treadle.task_types
  set
    description = v_new.description,
    priority = v_new.priority,
    max_attempts = v_new.max_attempts,
    timeout_s = v_new.timeout_s,
    ageing_rate = v_new.ageing_rate,
    retry = v_new.retry
  where task_types.name = p_name and v_new is distinct from v_old;
exception
  when check_violation or not_null_violation or data_exception then
    perform treadle.refuse(
      format('type %s cannot be defined so: %s', left(quote_nullable(p_name), 60), sqlerrm),
      jsonb_build_object('argument', 'type'),
      'A name has 1 to 100 of letters, digits and _ . : / - and settings stay in range: '
      'priority 0-100, max_attempts 1-1000, timeout_s above 0.'
    );
end;
$$;

comment on function treadle.define_type(text, jsonb) is
'Make or change a task type: description, priority, max_attempts, timeout_s, ageing_rate, retry.';

revoke all on function treadle.define_type(text, jsonb) from public;
grant execute on function treadle.define_type(text, jsonb) to treadle_operator;

create view treadle.agent_load as
select
  agents.id as agent_id,
  agents.type,
  agents.status,
  agents.status <> 'offline'
  and agents.heartbeat_at + make_interval(secs => 3 * agents.heartbeat_s) > clock_timestamp()
    as alive,
  agents.queues,
  agents.task_types,
  agents.capabilities,
  agents.models,
  agents.max_concurrent_tasks,
  coalesce(held.tasks, 0) as current_tasks,
  coalesce(held.running, 0) as running,
  held.oldest_claim_at,
  coalesce(past.failed_1h, 0) as failed_1h,
  agents.budget_usd,
  agents.heartbeat_at,
  clock_timestamp() - agents.heartbeat_at as heartbeat_age,
  agents.heartbeat_s,
  agents.claim_ttl_s,
  agents.url,
  agents.registered_at,
  agents.meta
from treadle.agents
left join lateral (
  select
    count(*) as tasks,
    count(*) filter (where tasks.status = 'running') as running,
    min(tasks.claimed_at) as oldest_claim_at
  from treadle.tasks
  where
    tasks.agent_id = agents.id and tasks.status in ('claimed', 'running', 'validating')
) as held on true
left join lateral (
  select count(*) as failed_1h
  from treadle.attempts
  where
    attempts.agent_id = agents.id
    and attempts.outcome = 'failed'
    and attempts.ended_at > clock_timestamp() - interval '1 hour'
) as past on true;

comment on view treadle.agent_load is
'One row per agent: status, sign of life, tasks in hand, failures of the last hour.';

grant select on treadle.agent_load to treadle_observer, treadle_operator;

create view treadle.dead_letter_review as
select
  dead_letters.id,
  dead_letters.task_id,
  tasks.queue,
  tasks.type,
  tasks.title,
  tasks.dag_id,
  dead_letters.class,
  dead_letters.reason,
  dead_letters.poison_pill,
  dead_letters.attempts,
  dead_letters.total_cost_usd,
  dead_letters.dead_lettered_at,
  dead_letters.resolution is not null as reviewed,
  dead_letters.resolution,
  dead_letters.resolved_at,
  dead_letters.reviewer,
  dead_letters.note,
  tasks.spec,
  (
    select
      jsonb_agg(
        jsonb_build_object(
          'attempt', attempts.attempt,
          'agent', attempts.agent_id,
          'class', attempts.class,
          'reason', attempts.reason,
          'error', attempts.error,
          'duration_s', round(
            extract(
              epoch from attempts.ended_at - coalesce(attempts.started_at, attempts.claimed_at)
            ),
            3
          ),
          'cost_usd', attempts.cost_usd,
          'ended_at', attempts.ended_at
        )
        order by attempts.ended_at
      )
    from treadle.attempts
    where attempts.task_id = dead_letters.task_id
  ) as history
from treadle.dead_letters
inner join treadle.tasks on dead_letters.task_id = tasks.id;

comment on view treadle.dead_letter_review is
'Dead letters with failure history, total cost and what was decided; open ones are not reviewed.';

grant select on treadle.dead_letter_review to treadle_observer, treadle_operator;

create view treadle.dispatch_log as
select
  attempts.task_id,
  attempts.attempt,
  attempts.agent_id,
  attempts.claimed_at,
  attempts.started_at,
  attempts.ended_at,
  attempts.outcome,
  attempts.class,
  attempts.reason,
  attempts.error,
  attempts.cost_usd
from treadle.attempts
union all
select
  tasks.id,
  tasks.attempt,
  coalesce(tasks.agent_id, tasks.completed_by),
  tasks.claimed_at,
  tasks.started_at,
  tasks.completed_at,
  tasks.status,
  null,
  null,
  null,
  tasks.cost_usd - coalesce(
    (select sum(attempts.cost_usd) from treadle.attempts where attempts.task_id = tasks.id), 0
  )
from treadle.tasks
where tasks.status in ('claimed', 'running', 'validating', 'completed');

comment on view treadle.dispatch_log is
'One row per attempt, the live and the completing ones included; filter by task_id.';

grant select on treadle.dispatch_log to treadle_observer, treadle_operator;

create view treadle.queue_health as
select
  queues.name as queue,
  queues.paused_at is not null as paused,
  coalesce(live.ready, 0) as ready,
  coalesce(live.waiting, 0) as waiting,
  coalesce(live.in_flight, 0) as in_flight,
  coalesce(live.retrying, 0) as retrying,
  coalesce(dead.letters, 0) as dead_letters,
  live.oldest_ready_at,
  clock_timestamp() - live.oldest_ready_at as oldest_ready_age,
  coalesce(ended.completed, 0) as completed_5m,
  round(coalesce(ended.completed, 0) / 300.0, 2) as completed_per_s,
  coalesce(failed.attempts, 0) as failed_attempts_5m,
  ended.wait_p50_s,
  ended.run_p50_s
from treadle.queues
left join lateral (
  select
    count(*) filter (where tasks.status = 'ready') as ready,
    count(*) filter (where tasks.status in ('created', 'pending', 'blocked')) as waiting,
    count(*) filter (where tasks.status in ('claimed', 'running', 'validating')) as in_flight,
    count(*) filter (where tasks.status = 'retrying') as retrying,
    min(tasks.created_at) filter (where tasks.status = 'ready') as oldest_ready_at
  from treadle.tasks
  where tasks.queue = queues.name and tasks.completed_at is null
) as live on true
left join lateral (
  select
    count(*) as completed,
    percentile_cont(0.5) within group (
      order by extract(epoch from tasks.claimed_at - tasks.created_at)
    )::numeric(12, 3) as wait_p50_s,
    percentile_cont(0.5) within group (
      order by extract(epoch from tasks.completed_at - tasks.started_at)
    )::numeric(12, 3) as run_p50_s
  from treadle.tasks
  where
    tasks.queue = queues.name
    and tasks.status = 'completed'
    and tasks.completed_at > clock_timestamp() - interval '5 minutes'
) as ended on true
left join lateral (
  select count(*) as attempts
  from treadle.attempts
  inner join treadle.tasks on attempts.task_id = tasks.id
  where
    tasks.queue = queues.name
    and attempts.outcome = 'failed'
    and attempts.ended_at > clock_timestamp() - interval '5 minutes'
) as failed on true
left join lateral (
  select count(*) as letters
  from treadle.dead_letters
  inner join treadle.tasks on dead_letters.task_id = tasks.id
  where tasks.queue = queues.name and dead_letters.resolution is null
) as dead on true;

comment on view treadle.queue_health is
'One row per queue: depth by state, the oldest ready task, rates over the last five minutes.';

grant select on treadle.queue_health to treadle_observer, treadle_operator;

create view treadle.stuck as
with live as (
  select agents.*
  from treadle.agents
  where
    agents.status = 'active'
    and agents.heartbeat_at + make_interval(secs => 3 * agents.heartbeat_s) > clock_timestamp()
),

waiting as (
  select
    tasks.lane_id,
    count(*) as tasks,
    min(tasks.created_at) as since,
    (array_agg(tasks.id order by tasks.id))[1] as example_id
  from treadle.tasks
  where tasks.status = 'ready'
  group by tasks.lane_id
)

select
  case
    when queues.paused_at is not null
      then 'queue ' || queues.name || ' is paused' || coalesce(': ' || queues.paused_reason, '')
    when
      lanes.agent_id is not null
      and not exists (select from live where live.id = lanes.agent_id)
      then 'assigned to agent ' || lanes.agent_id || ', which is not active'
    when not exists (select from live where lanes.queue = any (live.queues))
      then 'no live agent serves queue ' || lanes.queue
    when
      not exists (
        select from live
        where
          lanes.queue = any (live.queues)
          and (live.task_types is null or lanes.type = any (live.task_types))
      )
      then 'no live agent of the queue handles type ' || lanes.type
    else 'no live agent of the queue has all of ' || lanes.capabilities::text
  end as reason,
  'ready' as status,
  lanes.queue,
  lanes.type,
  waiting.tasks,
  waiting.since,
  waiting.example_id
from waiting
inner join treadle.lanes on waiting.lane_id = lanes.id
inner join treadle.queues on lanes.queue = queues.name
where
  queues.paused_at is not null
  or not exists (
    select from live
    where
      lanes.queue = any (live.queues)
      and (live.task_types is null or lanes.type = any (live.task_types))
      and lanes.capabilities <@ live.capabilities
      and (lanes.agent_id is null or lanes.agent_id = live.id)
  )
union all
select
  'the claim of ' || tasks.agent_id || ' ran out and no reaper took it back',
  tasks.status,
  tasks.queue,
  tasks.type,
  1,
  tasks.lease_until,
  tasks.id
from treadle.tasks
where
  tasks.status in ('claimed', 'running', 'validating')
  and treadle.stale_reason(tasks, clock_timestamp() - interval '15 seconds') is not null
union all
select
  'due since ' || to_char(coalesce(tasks.retry_at, tasks.run_at), 'YYYY-MM-DD HH24:MI:SS')
  || ' and no promoter made it ready',
  tasks.status,
  tasks.queue,
  tasks.type,
  1,
  coalesce(tasks.retry_at, tasks.run_at),
  tasks.id
from treadle.tasks
where
  (tasks.status = 'retrying' and tasks.retry_at < clock_timestamp() - interval '15 seconds')
  or (
    tasks.status = 'pending' and tasks.blocked_count = 0
    and tasks.run_at < clock_timestamp() - interval '15 seconds'
  );

comment on view treadle.stuck is
'Tasks that should move and do not, with the reason; ready ones are grouped by lane.';

grant select on treadle.stuck to treadle_observer, treadle_operator;

create view treadle.task_details as
select
  tasks.id,
  tasks.queue,
  tasks.type,
  tasks.title,
  tasks.status,
  tasks.priority,
  round((tasks.rank - treadle.rank_shift(lanes.ageing, now())) / 1000000.0, 3)
    as effective_priority,
  (lanes.ageing / 1000000.0)::numeric(10, 6) as ageing_rate,
  tasks.deadline_at,
  tasks.spec,
  tasks.output,
  tasks.output_ref,
  tasks.artifacts,
  tasks.validation,
  tasks.decision_report,
  tasks.outcome,
  tasks.failure_class,
  tasks.failure_reason,
  tasks.attempt,
  tasks.max_attempts,
  tasks.rate_limits,
  treadle.retry_policy(tasks.queue, tasks.type, tasks.retry) as retry,
  tasks.retry_at,
  tasks.run_at,
  tasks.timeout_s,
  tasks.agent_id,
  tasks.claimed_at,
  tasks.started_at,
  tasks.heartbeat_at,
  tasks.lease_until,
  tasks.progress,
  lanes.capabilities,
  tasks.assigned_agent,
  array(
    select dependencies.depends_on
    from treadle.dependencies
    where dependencies.task_id = tasks.id
    order by 1
  ) as depends_on,
  array(
    select dependencies.depends_on
    from treadle.dependencies
    inner join treadle.tasks as other on dependencies.depends_on = other.id
    where dependencies.task_id = tasks.id and other.status <> 'completed'
    order by 1
  ) as blocked_by,
  tasks.parent_id,
  tasks.dag_id,
  tasks.project_id,
  tasks.idempotency_key,
  tasks.consumer,
  tasks.consumed_at,
  tasks.external_ref,
  tasks.tags,
  tasks.created_by,
  tasks.source,
  tasks.source_job,
  tasks.notes,
  tasks.created_at,
  tasks.completed_at,
  tasks.completed_by,
  tasks.cost_usd,
  tasks.max_cost_usd,
  tasks.input_tokens,
  tasks.output_tokens
from treadle.tasks
inner join treadle.lanes on tasks.lane_id = lanes.id;

comment on view treadle.task_details is 'One row per task with all its fields.';

grant select on treadle.task_details to treadle_observer, treadle_operator;

create view treadle.transitions as
select
  steps.from_status,
  steps.to_status,
  steps.by,
  steps.why
from (
  values
  (null, 'created', 'enqueue_task', 'held back'),
  (null, 'pending', 'enqueue_task', 'waits for its time'),
  (null, 'ready', 'enqueue_task', 'claimable at once'),
  ('created', 'ready', 'unhold_tasks', 'let go'),
  ('created', 'pending', 'unhold_tasks', 'let go, waits for its time'),
  ('pending', 'ready', 'promote_tasks', 'its time has come'),
  ('ready', 'claimed', 'claim_tasks', 'an agent has it'),
  ('ready', 'running', 'claim_tasks', 'claimed and started'),
  ('claimed', 'running', 'start_tasks', 'the handler runs'),
  ('claimed', 'completed', 'complete_tasks', 'done quickly'),
  ('running', 'completed', 'complete_tasks', 'done'),
  ('validating', 'completed', 'complete_tasks', 'output accepted'),
  ('ready', 'completed', 'complete_tasks', 'late, and nobody took over'),
  ('retrying', 'completed', 'complete_tasks', 'late, and nobody took over'),
  ('claimed', 'ready', 'release_tasks', 'given back'),
  ('running', 'ready', 'release_tasks', 'given back'),
  ('claimed', 'retrying', 'fail_tasks', 'failed'),
  ('running', 'retrying', 'fail_tasks', 'failed'),
  ('validating', 'retrying', 'fail_tasks', 'output refused'),
  ('claimed', 'ready', 'fail_tasks', 'retried at once'),
  ('running', 'ready', 'fail_tasks', 'retried at once'),
  ('validating', 'ready', 'fail_tasks', 'retried at once'),
  ('claimed', 'dead_lettered', 'fail_tasks', 'gave up'),
  ('running', 'dead_lettered', 'fail_tasks', 'gave up'),
  ('validating', 'dead_lettered', 'fail_tasks', 'gave up'),
  ('claimed', 'cancelled', 'fail_tasks', 'the handler said so'),
  ('running', 'cancelled', 'fail_tasks', 'the handler said so'),
  ('validating', 'cancelled', 'fail_tasks', 'the handler said so'),
  ('claimed', 'retrying', 'reap_claims', 'not started in time'),
  ('running', 'retrying', 'reap_claims', 'no heartbeat, or too long'),
  ('validating', 'retrying', 'reap_claims', 'no heartbeat, or too long'),
  ('claimed', 'ready', 'reap_claims', 'retried at once'),
  ('running', 'ready', 'reap_claims', 'retried at once'),
  ('validating', 'ready', 'reap_claims', 'retried at once'),
  ('claimed', 'dead_lettered', 'reap_claims', 'gave up'),
  ('running', 'dead_lettered', 'reap_claims', 'gave up'),
  ('validating', 'dead_lettered', 'reap_claims', 'gave up'),
  ('retrying', 'ready', 'promote_tasks', 'the delay is over'),
  ('retrying', 'ready', 'retry_task', 'now, not later'),
  ('dead_lettered', 'ready', 'retry_task', 'a person decided'),
  ('dead_lettered', 'cancelled', 'retry_task', 'a person decided'),
  ('cancelled', 'ready', 'retry_task', 'a person changed their mind'),
  ('created', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('pending', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('ready', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('claimed', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('running', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('validating', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('blocked', 'cancelled', 'cancel_tasks', 'not wanted'),
  ('retrying', 'cancelled', 'cancel_tasks', 'not wanted')
) as steps (from_status, to_status, by, why);

comment on view treadle.transitions is
'Every allowed change of state, the function that makes it, and why.';

grant select on treadle.transitions to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;

create or replace trigger tasks_100_place
before insert on treadle.tasks
for each row
when (new.lane_id is null)
execute function treadle.tg_tasks__place();

create or replace trigger tasks_900_wake
after insert on treadle.tasks
referencing new table as added
for each statement
execute function treadle.tg_tasks__wake();
