-- claims_are_plain: whether a claim holds nothing but tasks: no gate, budget, breaker or key.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.claims_are_plain()
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return not (
    exists (select from treadle.budgets)
    or exists (select from treadle.gates where gates.unit is not null)
    or exists (select from treadle.breakers where breakers.state <> 'closed')
    or exists (select from treadle.admissions)
  );
end;
$$;

comment on function treadle.claims_are_plain() is
'Internal: whether no rate limit, budget, open breaker or admission is about.';

revoke all on function treadle.claims_are_plain() from public;
