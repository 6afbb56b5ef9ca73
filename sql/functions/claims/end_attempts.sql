-- end_attempts: record failed attempts and move their tasks on, for both workers and the reaper.
--
-- Concurrency: the caller has locked the rows, in id order.
-- Lock order:  tasks, dags, breakers, budgets, gates, then the history.

-- retry_delay: return the seconds to wait after a failed attempt.
--
-- exponential: initial * multiplier ^ (attempt - 1), up to the cap, with jitter of up to half in
-- both directions. Exponent and delay are capped before use.
create or replace function treadle.retry_delay(p_policy jsonb, p_attempt integer)
returns double precision
language sql
volatile
set search_path = pg_catalog, pg_temp
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
'Seconds until the next attempt under a policy, after a number of attempts.';

-- retry_policy: return the policy of a task: its own settings over those of its type and queue.
--
-- It is merged key by key: a task may change only the strategy and inherit the rest.
create or replace function treadle.retry_policy(p_queue text, p_type text, p_retry jsonb)
returns jsonb
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
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

-- decide_retry: decide what follows a failed attempt: retry now or later, give up, or cancel.
--
-- After a rate limit the attempt is not counted, a limited number of times; its gate decides how
-- long it waits, see apply_rate_limits. Three attempts that failed on two agents make a poison
-- pill: the task is at fault, not the agent. Failures of this database count for neither.
--
-- Concurrency: the caller has locked the row.
create or replace function treadle.decide_retry(
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
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy  jsonb := treadle.retry_policy(
    p_task.queue, p_task.type, (treadle.options_of(p_task)).retry
  );
  v_class   jsonb := to_jsonb(p_class);
  -- Counted since a person restarted the task last.
  v_attempt integer := p_task.attempt - p_task.earlier_attempts;
begin
  refunded := p_class = 'rate_limit'
    and p_action is distinct from 'fail'
    and p_task.rate_limits < (v_policy ->> 'max_rate_limits')::integer;
  poison_pill := (v_policy ->> 'poison')::boolean and not refunded and v_attempt >= 3 and (
    select count(*) >= 3 and count(distinct tried.agent_id) >= 2
    from (
      select attempts.agent_id
      from treadle.attempts
      where
        attempts.task_id = p_task.id and attempts.outcome = 'failed'
        and attempts.class <> 'unavailable'
        and attempts.attempt > p_task.earlier_attempts
      union all
      select p_task.agent_id where p_class <> 'unavailable'
    ) as tried
  );

  -- A delay requested by a handler or a server is limited.
  delay_s := case
    when p_retry_after >= 0 then least(p_retry_after, 2592000)
    when p_class = 'rate_limit' then 60
    else treadle.retry_delay(v_policy, v_attempt)
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

-- attempt_cost: return what the attempt that ends now has spent.
--
-- Concurrency: the caller has locked the task.
create or replace function treadle.attempt_cost(p_task uuid, p_cost_usd numeric)
returns numeric
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    greatest(
      0,
      p_cost_usd - coalesce(
        (select sum(attempts.cost_usd) from treadle.attempts where attempts.task_id = p_task), 0
      )
    )
$$;

-- record_attempts: write the history of ended attempts: attempts, dead letters, events.
--
-- Concurrency: the caller has locked the tasks.
-- Lock order:  attempts, dead_letters, events.
create or replace function treadle.record_attempts(
  p_ended  treadle.ended_attempt[],
  p_now    timestamptz
)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  insert into treadle.attempts (
    task_id, claim_token, attempt, agent_id, claimed_at, started_at, ended_at, outcome, class,
    reason, error, cost_usd, model
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
    treadle.attempt_cost(ended.task_id, ended.cost_usd),
    ended.model
  from unnest(p_ended) as ended;

  insert into treadle.dead_letters (
    task_id, dead_lettered_at, attempts, class, reason, poison_pill, total_cost_usd, about,
    fingerprint
  )
  select
    ended.task_id, p_now, ended.attempt, ended.class,
    left(split_part(coalesce(ended.error, ended.reason), e'\n', 1), 2000),
    ended.poison_pill, ended.cost_usd, said.about,
    treadle.error_fingerprint(ended.class, said.about)
  from unnest(p_ended) as ended
  cross join lateral (
    select
      coalesce(
        treadle.error_pattern(ended.error), treadle.error_pattern(ended.reason), ended.class
      ) as about
    offset 0
  ) as said
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
    ) || coalesce(
      (
        select treadle.dead_letter_json(dead_letters)
        from treadle.dead_letters
        where
          ended.next = 'dead_lettered'
          and dead_letters.task_id = ended.task_id and dead_letters.resolution is null
      ),
      '{}'
    )
  from unnest(p_ended) as ended
  where ended.next in ('dead_lettered', 'cancelled');
$$;

-- apply_decisions: apply the decisions about ended attempts to their tasks, and remove the claims.
--
-- Concurrency: the caller has locked the rows.
-- Lock order:  tasks.
create or replace function treadle.apply_decisions(
  p_ended  treadle.ended_attempt[],
  p_now    timestamptz
)
returns table (
  place tid, id uuid, status text, retry_at timestamptz, queue text, counted boolean
)
language sql
volatile
set search_path = pg_catalog, pg_temp
as $$
  update treadle.tasks
  set
    status = ended.next,
    attempt = tasks.attempt - ended.refunded::integer,
    rate_limits = tasks.rate_limits + ended.refunded::integer,
    retry_at = case
      when ended.next = 'retrying' then p_now + make_interval(secs => ended.delay_s)
    end,
    delayed_at = case when ended.next = 'retrying' then p_now else tasks.delayed_at end,
    completed_at = case when ended.next in ('dead_lettered', 'cancelled') then p_now end,
    slot = case when ended.next = 'ready' then tasks.slot end,
    failure_class = ended.class,
    -- Only the first line; the rest, such as a traceback, is in the history.
    failure_reason = left(split_part(coalesce(ended.error, ended.reason), e'\n', 1), 2000),
    last_token = tasks.claim_token,
    agent_id = null,
    claim_token = null,
    lease_until = null,
    claimed_at = null,
    started_at = null,
    heartbeat_at = null
  from unnest(p_ended) as ended
  where tasks.ctid = ended.place
  returning
    tasks.ctid, tasks.id, tasks.status, tasks.retry_at, tasks.queue, treadle.is_counted(tasks)
$$;

create or replace function treadle.end_attempts(
  p_rows         tid[],
  p_classes      text[],
  p_reasons      text[],
  p_errors       text[],
  p_actions      text[],
  p_retry_after  double precision[],
  p_keys         text[] default null
)
returns table (id uuid, status text, retry_at timestamptz)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
  v_now    timestamptz := treadle.clock();
  v_types  text[] := treadle.types_with_requirements();
  v_rows   tid[];
  v_ended  uuid[];
  v_counted uuid[];
  v_queues text[];
  v_due_at timestamptz;
  v_end    treadle.ended_attempt[];
  v_after  double precision[];
  v_keys   text[];
begin
  select array_agg(
    row(
      tasks.ctid, tasks.id, tasks.claim_token, tasks.agent_id, tasks.claimed_at,
      -- A handler that fails at once has run, although its start was not reported.
      case when ended.reason = 'handler' then coalesce(tasks.started_at, tasks.claimed_at)
        else tasks.started_at
      end,
      tasks.attempt, tasks.cost_usd, ended.class, ended.reason, left(ended.error, 20000),
      judged.next, judged.delay_s, judged.poison_pill, judged.refunded,
      case
        when tasks.cost_usd > 0 or treadle.has_requirements(tasks, v_types)
          then treadle.attempt_model(tasks)
      end
    )::treadle.ended_attempt
  ), array_agg(ended.retry_after), array_agg(ended.key)
  into v_end, v_after, v_keys
  from unnest(p_rows, p_classes, p_reasons, p_errors, p_actions, p_retry_after, p_keys)
    as ended (ctid, class, reason, error, action, retry_after, key)
  inner join treadle.tasks on ended.ctid = tasks.ctid
  cross join lateral treadle.decide_retry(tasks, ended.class, ended.action, ended.retry_after)
    as judged;

  perform treadle.record_attempts(v_end, v_now);

  select
    array_agg(moved.place),
    array_agg(distinct moved.queue) filter (where moved.status = 'ready'),
    min(moved.retry_at),
    array_agg(moved.id) filter (where moved.status in ('dead_lettered', 'cancelled')),
    array_agg(moved.id) filter (where moved.counted)
  into v_rows, v_queues, v_due_at, v_ended, v_counted
  from treadle.apply_decisions(v_end, v_now) as moved;

  perform treadle.notify_workers(v_queues);
  perform treadle.notify_promoter(v_due_at);
  perform treadle.audit_tasks(v_rows, 'failed', null);
  perform treadle.propagate_ended(v_ended, v_now) where v_ended is not null;
  perform treadle.record_failures(v_end, v_now);
  perform treadle.release_resources(v_counted);
  perform treadle.apply_rate_limits(
    v_end, v_keys, v_after, v_now
  ) where 'rate_limit' = any (p_classes);
  return query
  select tasks.id, tasks.status, tasks.retry_at
  from unnest(v_end) as ended
  inner join treadle.tasks on ended.task_id = tasks.id;
end;
$$;

grant execute on function treadle.retry_delay(jsonb, integer) to
treadle_observer, treadle_operator;
grant execute on function treadle.retry_policy(text, text, jsonb) to
treadle_observer, treadle_operator;
