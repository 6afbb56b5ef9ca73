-- roll_budgets: begin the new period of budgets whose old one is over.
--
-- What is reserved stays reserved: those tasks go on. A clock that goes back opens no old period.
--
-- Concurrency: the caller holds the budgets.
-- Lock order:  budgets.
-- Raises:      nothing.

create or replace function treadle.roll_budgets(p_ids bigint[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
  v_rolled bigint[];
begin
  with rolled as (
    update treadle.budgets
    set
      spent_usd = 0,
      period_start = treadle.period_start(budgets.period, p_now),
      warned_at = null
    where
      budgets.id = any (p_ids)
      and budgets.period_start < treadle.period_start(budgets.period, p_now)
    returning budgets.id
  )

  select array_agg(rolled.id) into v_rolled from rolled;
  perform treadle.request_budgets(v_rolled) where v_rolled is not null;
end;
$$;

comment on function treadle.roll_budgets(bigint[], timestamptz) is
'Internal: sets what was spent to nothing where a new period has begun.';

revoke all on function treadle.roll_budgets(bigint[], timestamptz) from public;
