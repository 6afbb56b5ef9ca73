-- attempt_cost: what an attempt that ends now has spent: what earlier ones have not.
--
-- Concurrency: the caller holds the task.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.attempt_cost(uuid, numeric) is
'Internal: the cost of a task so far, less what its ended attempts have in the history.';

revoke all on function treadle.attempt_cost(uuid, numeric) from public;
