-- release_reservations: give back what tasks had reserved and did not spend.
--
-- Concurrency: the caller holds the tasks, so nobody reserves for them meanwhile.
-- Lock order:  budgets, by id, after tasks; reservations.
-- Raises:      nothing.

create or replace function treadle.release_reservations(p_ids uuid[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_ids bigint[] := array(
    select distinct reservations.budget_id
    from treadle.reservations
    where reservations.task_id = any (p_ids)
  );
begin
  if v_ids = '{}' then
    return;
  end if;
  perform treadle.lock_budgets(v_ids, true);
  with gone as (
    delete from treadle.reservations
    where reservations.task_id = any (p_ids)
    returning reservations.budget_id, reservations.usd
  ),

  freed as (
    select gone.budget_id, sum(gone.usd) as usd from gone group by gone.budget_id
  )

  update treadle.budgets
  set reserved_usd = budgets.reserved_usd - freed.usd
  from freed
  where budgets.id = freed.budget_id;
  perform treadle.request_budgets(v_ids);
end;
$$;

comment on function treadle.release_reservations(uuid[]) is
'Internal: give back what tasks had reserved and did not spend.';

revoke all on function treadle.release_reservations(uuid[]) from public;
