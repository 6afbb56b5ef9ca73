-- agent_can_spend: what is left of the tightest budget of an agent; null without one.
--
-- Below zero where nothing is left: then not even a task without a limit fits.
--
-- Concurrency: reads; afford_rows looks again under the lock.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.agent_can_spend(p_agent text, p_now timestamptz)
returns numeric
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select case when min(rooms.usd) <= 0 then -1 else min(rooms.usd) end
  from (
    select treadle.budget_left(budgets, p_now) as usd
    from treadle.budgets
    where budgets.scope = 'agent' and budgets.scope_key = p_agent
  ) as rooms
$$;

comment on function treadle.agent_can_spend(text, timestamptz) is
'Internal: what is left of the tightest budget of an agent; null without one.';

revoke all on function treadle.agent_can_spend(text, timestamptz) from public;
