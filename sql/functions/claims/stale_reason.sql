-- stale_reason: why a claim has run out, or null while it holds.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.stale_reason(p_task treadle.tasks, p_now timestamptz)
returns text
language sql
stable
return case
  -- An agent of the work API gives no heartbeats, and has the time that it needs.
  when p_task.queue = 'work' then case when p_task.lease_until < p_now then 'work_stale' end
  when p_task.lease_until < p_now and p_task.started_at is null then 'claim_expired'
  when p_task.lease_until < p_now then 'heartbeat_timeout'
  when
    p_task.claim_token is not null
    and p_task.started_at + pg_catalog.make_interval(secs => p_task.timeout_s) < p_now
    then 'timeout'
end;

comment on function treadle.stale_reason(treadle.tasks, timestamptz) is
'Internal: claim_expired, heartbeat_timeout, timeout, work_stale, or null.';

revoke all on function treadle.stale_reason(treadle.tasks, timestamptz) from public;
grant execute on function treadle.stale_reason(treadle.tasks, timestamptz) to
treadle_observer, treadle_operator;
