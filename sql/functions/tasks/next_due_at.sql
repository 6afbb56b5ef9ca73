-- next_due_at: when the promoter has something to do next.
--
-- Concurrency: reads the heads of three indexes.
-- Lock order:  none.
-- Raises:      nothing.

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
    ),
    (
      select waits.expires_at
      from treadle.waits
      where waits.status = 'open' and waits.expires_at is not null
      order by waits.expires_at
      limit 1
    )
  )
$$;

comment on function treadle.next_due_at() is
'The earliest retry or run time of a waiting task, or expiry of a wait.';

revoke all on function treadle.next_due_at() from public;
grant execute on function treadle.next_due_at() to treadle_worker;
