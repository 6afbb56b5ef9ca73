-- end_attempts: record failed attempts and move their tasks on. One rule for workers and reaper.
--
-- Concurrency: the caller has locked the rows, in id order.
-- Lock order:  tasks, dags, breakers, budgets, gates, then the history.
-- Raises:      nothing.

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
  v_types  text[] := treadle.demanding_types();
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
      tasks.ctid, tasks.id, tasks.claim_token, tasks.agent_id, tasks.claimed_at, tasks.started_at,
      tasks.attempt, tasks.cost_usd, ended.class, ended.reason, left(ended.error, 20000),
      judged.next, judged.delay_s, judged.poison_pill, judged.refunded,
      case
        when tasks.cost_usd > 0 or treadle.has_terms(tasks, v_types)
          then treadle.attempt_model(tasks)
      end
    )::treadle.ended_attempt
  ), array_agg(ended.retry_after), array_agg(ended.key)
  into v_end, v_after, v_keys
  from unnest(p_rows, p_classes, p_reasons, p_errors, p_actions, p_retry_after, p_keys)
    as ended (ctid, class, reason, error, action, retry_after, key)
  inner join treadle.tasks on ended.ctid = tasks.ctid
  cross join lateral treadle.judge_attempt(tasks, ended.class, ended.action, ended.retry_after)
    as judged;

  perform treadle.record_attempts(v_end, v_now);

  select
    array_agg(moved.place),
    array_agg(distinct moved.queue) filter (where moved.status = 'ready'),
    min(moved.retry_at),
    array_agg(moved.id) filter (where moved.status in ('dead_lettered', 'cancelled')),
    array_agg(moved.id) filter (where moved.counted)
  into v_rows, v_queues, v_due_at, v_ended, v_counted
  from treadle.move_attempts(v_end, v_now) as moved;

  perform treadle.wake_queues(v_queues);
  perform treadle.wake_promoter(v_due_at);
  perform treadle.audit_tasks(v_rows, 'failed', null);
  perform treadle.settle_ends(v_ended, v_now) where v_ended is not null;
  perform treadle.note_failures(v_end, v_now);
  perform treadle.free_tasks(v_counted);
  perform treadle.slow_down(v_end, v_keys, v_after, v_now) where 'rate_limit' = any (p_classes);
  return query
  select tasks.id, tasks.status, tasks.retry_at
  from unnest(v_end) as ended
  inner join treadle.tasks on ended.task_id = tasks.id;
end;
$$;

comment on function treadle.end_attempts(
  tid[], text[], text[], text[], text[], double precision[], text[]
) is 'Internal: ends attempts that failed and decides what follows.';

revoke all on function treadle.end_attempts(
  tid[], text[], text[], text[], text[], double precision[], text[]
) from public;
