-- park_rows: take tasks out of the claim path until their budget has room.
--
-- Concurrency: the caller holds the tasks and the budgets.
-- Lock order:  tasks.
-- Raises:      nothing.

create or replace function treadle.park_rows(p_rows tid[], p_budgets bigint[])
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_rows tid[];
  v_keys text[];
begin
  with parked as (
    update treadle.tasks
    set status = 'pending', slot = null, budget_id = given.budget_id
    from unnest(p_rows, p_budgets) as given (place, budget_id)
    where tasks.ctid = given.place
    returning tasks.ctid, tasks.concurrency_key
  )

  select
    array_agg(parked.ctid),
    array_agg(distinct parked.concurrency_key) filter (where parked.concurrency_key is not null)
  into v_rows, v_keys
  from parked;
  perform treadle.audit_tasks(v_rows, 'parked', null);
  -- Others may have the slots meanwhile.
  perform treadle.request_slots(v_keys) where v_keys is not null;
  perform treadle.wake_promoter(treadle.clock());
end;
$$;

comment on function treadle.park_rows(tid[], bigint[]) is
'Internal: makes ready tasks wait for budgets, and tells the promoter.';

revoke all on function treadle.park_rows(tid[], bigint[]) from public;
