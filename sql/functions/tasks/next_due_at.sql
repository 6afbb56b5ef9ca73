-- next_due_at: return when the promoter has something to do next.
--
-- Concurrency: reads only the first entries of some indexes.

create or replace function treadle.next_due_at()
returns timestamptz
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
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
      where
        tasks.status = 'pending' and tasks.blocked_count = 0 and tasks.run_at is not null
        and tasks.slot is null and tasks.budget_id is null
      order by tasks.run_at
      limit 1
    ),
    (
      select tasks.rerank_at
      from treadle.tasks
      where
        tasks.rerank_at is not null
        and tasks.status in ('created', 'pending', 'ready', 'retrying', 'blocked')
      order by tasks.rerank_at
      limit 1
    ),
    (
      select waits.expires_at
      from treadle.waits
      where waits.status = 'open' and waits.expires_at is not null
      order by waits.expires_at
      limit 1
    ),
    (select min(gates.closed_until) from treadle.gates),
    (
      select min(breakers.probe_at)
      from treadle.breakers
      where breakers.state = 'open' and breakers.probe_at > treadle.clock()
    ),
    (
      select min(treadle.period_end(budgets))
      from treadle.budgets
      where budgets.id = any (treadle.parked_budgets())
    ),
    -- Remaining requests belong to keys or tasks that another session has locked.
    (
      select treadle.clock() + interval '100 milliseconds'
      where exists (select from treadle.admissions)
    )
  )
$$;

comment on function treadle.next_due_at() is
'The earliest retry, run time or rank change of a task, expiry of a wait, or new budget period.';

grant execute on function treadle.next_due_at() to treadle_worker;
