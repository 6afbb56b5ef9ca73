-- lock_budgets: lock budgets in the one order that all keep; returns those that it has.
--
-- Concurrency: with p_wait it waits for who holds one, else those are left out.
-- Lock order:  budgets, by id.
-- Raises:      nothing.

create or replace function treadle.lock_budgets(p_ids bigint[], p_wait boolean)
returns bigint[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
begin
  if p_wait then
    return array(
      select budgets.id
      from treadle.budgets
      where budgets.id = any (p_ids)
      order by budgets.id
      for no key update
    );
  end if;
  return array(
    select budgets.id
    from treadle.budgets
    where budgets.id = any (p_ids)
    order by budgets.id
    for no key update skip locked
  );
end;
$$;

comment on function treadle.lock_budgets(bigint[], boolean) is
'Internal: locks budgets, lowest id first.';

revoke all on function treadle.lock_budgets(bigint[], boolean) from public;
