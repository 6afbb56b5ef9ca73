-- parked_budgets: the budgets that tasks are parked at or that a question is open about.
--
-- Jumps from one to the next in the index, however many tasks are parked.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.parked_budgets()
returns bigint[]
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
  with recursive parked as (
    (
      select tasks.budget_id as id
      from treadle.tasks
      where tasks.budget_id is not null
      order by tasks.budget_id
      limit 1
    )
    union all
    select (
      select tasks.budget_id
      from treadle.tasks
      where tasks.budget_id > parked.id
      order by tasks.budget_id
      limit 1
    )
    from parked
    where parked.id is not null
  )

  select array(
    select parked.id from parked where parked.id is not null
    union
    select waits.budget_id from treadle.waits
    where waits.status = 'open' and waits.budget_id is not null
    order by 1
  )
$$;

comment on function treadle.parked_budgets() is
'Internal: ids of the budgets that somebody waits for.';

revoke all on function treadle.parked_budgets() from public;
