-- recount_rows: let the delays of some waiting tasks count from now.
--
-- Concurrency: the caller holds the rows.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.recount_rows(p_rows tid[], p_now timestamptz)
returns void
language sql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  update treadle.tasks
  set
    retry_at = tasks.retry_at - (tasks.delayed_at - p_now),
    run_at = case
      when tasks.status = 'pending' then tasks.run_at - (tasks.delayed_at - p_now)
      else tasks.run_at
    end,
    delayed_at = p_now
  where tasks.ctid = any (p_rows)
$$;

comment on function treadle.recount_rows(tid[], timestamptz) is
'Internal: moves retry_at and run_at by as much as their delay began in the future.';

revoke all on function treadle.recount_rows(tid[], timestamptz) from public;
