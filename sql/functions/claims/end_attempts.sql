-- end_attempts: record failed attempts and move their tasks on. One rule for workers and reaper.
--
-- Concurrency: the caller has locked the rows, in id order.
-- Lock order:  tasks, dags, then the history.
-- Raises:      nothing.

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
  v_ended  uuid[];
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
    min(moved.retry_at),
    array_agg(moved.id) filter (where moved.status in ('dead_lettered', 'cancelled'))
  into v_rows, v_queues, v_due_at, v_ended
  from moved;

  perform treadle.wake_queues(v_queues);
  perform treadle.wake_promoter(v_due_at);
  perform treadle.audit_tasks(v_rows, 'failed', null);
  perform treadle.settle_ends(v_ended, v_now) where v_ended is not null;
  return query
  select tasks.id, tasks.status, tasks.retry_at
  from unnest(v_end) as ended
  inner join treadle.tasks on ended.task_id = tasks.id;
end;
$$;

comment on function treadle.end_attempts(
  tid[], text[], text[], text[], text[], double precision[]
) is 'Internal: ends attempts that failed and decides what follows.';

revoke all on function treadle.end_attempts(
  tid[], text[], text[], text[], text[], double precision[]
) from public;
