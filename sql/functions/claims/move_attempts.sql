-- move_attempts: write what follows of ended attempts on their tasks, and take the claims off.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.move_attempts(
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
    outcome = case when ended.next in ('dead_lettered', 'cancelled') then ended.next end,
    slot = case when ended.next = 'ready' then tasks.slot end,
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
  from unnest(p_ended) as ended
  where tasks.ctid = ended.place
  returning
    tasks.ctid, tasks.id, tasks.status, tasks.retry_at, tasks.queue, treadle.is_counted(tasks)
$$;

comment on function treadle.move_attempts(treadle.ended_attempt[], timestamptz) is
'Internal: moves tasks whose attempts have ended.';

revoke all on function treadle.move_attempts(treadle.ended_attempt[], timestamptz) from public;
