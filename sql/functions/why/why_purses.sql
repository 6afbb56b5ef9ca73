-- why_purses: every agent that could take a task has spent too much of its own budget.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.why_purses(
  p_task  treadle.tasks,
  p_lane  treadle.lanes,
  p_now   timestamptz
)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_poor record;
begin
  if not exists (select from treadle.budgets where budgets.scope = 'agent') then
    return;
  end if;

  select
    bool_or(
      coalesce(purse.usd >= coalesce(p_task.max_cost_usd - p_task.cost_usd, 0), true)
    ) as enough,
    string_agg(
      (takers.agent).id || ' can spend ' || treadle.dollars(greatest(purse.usd, 0)), ', '
    ) as words,
    jsonb_agg(
      jsonb_build_object('id', (takers.agent).id, 'left_usd', greatest(purse.usd, 0))
    ) as agents
  into v_poor
  from treadle.takers(p_lane, p_now) as takers
  cross join lateral (
    select treadle.agent_can_spend((takers.agent).id, p_now) as usd
  ) as purse;
  if coalesce(v_poor.enough, true) then
    return;
  end if;

  sentence := format(
    'no agent that could take it can afford it: it may cost %s, %s',
    coalesce(treadle.dollars(p_task.max_cost_usd), 'something'), left(v_poor.words, 300)
  );
  reason := 'agent_budget';
  detail := jsonb_build_object('agents', v_poor.agents, 'max_cost_usd', p_task.max_cost_usd);
  return next;
end;
$$;

comment on function treadle.why_purses(treadle.tasks, treadle.lanes, timestamptz) is
'Internal: that no agent which may take a task has the money for it.';

revoke all on function treadle.why_purses(treadle.tasks, treadle.lanes, timestamptz) from public;
