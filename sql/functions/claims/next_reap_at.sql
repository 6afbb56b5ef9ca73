-- next_reap_at: return the earliest time at which a claim can expire.
--
-- Concurrency: reads only the index of live claims.

create or replace function treadle.next_reap_at()
returns timestamptz
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
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

comment on function treadle.next_reap_at() is
'The earliest time at which a claim can expire; null if there is none.';

grant execute on function treadle.next_reap_at() to treadle_worker;
