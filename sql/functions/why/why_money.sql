-- why_money: budgets that have less left than the task may spend.

-- why_rates: rate limits that have no room for the task now, or never will.
create or replace function treadle.why_rates(
  p_task  treadle.tasks,
  p_lane  treadle.lanes,
  p_now   timestamptz
)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case
      when wanted.need > gates.amount then format(
        'needs %s %s, but gate %s allows %s in %s', trim_scale(wanted.need), gates.unit, gates.key,
        trim_scale(gates.amount), period.words
      )
      else format(
        'gate %s allows %s %s in %s; next room at %s', gates.key,
        trim_scale(gates.amount), gates.unit, period.words, treadle.format_utc(period.next)
      )
    end,
    case when wanted.need > gates.amount then 'gate_size' else 'gate_rate' end,
    case when wanted.need <= gates.amount then period.next end,
    jsonb_build_object(
      'gate', gates.key, 'unit', gates.unit, 'amount', gates.amount, 'period_s', gates.period_s,
      'left', wanted.room, 'needs', wanted.need
    )
  from treadle.gates
  cross join lateral (
    select
      treadle.gate_need(p_task, gates.unit) as need,
      coalesce((treadle.gate_room(array[gates.key], p_now))[1], 0) as room
  ) as wanted
  cross join lateral (
    select
      treadle.format_duration(make_interval(secs => gates.period_s)) as words,
      treadle.next_room_at(gates.key, wanted.need, 0, p_now) as next
  ) as period
  where
    gates.key = any (p_lane.gates)
    and gates.unit is not null
    and (
      wanted.need > gates.amount
      -- Closed gates are reported by why_gates.
      or (
        coalesce(gates.closed_until <= p_now, true)
        and (wanted.room <= 0 or wanted.room < wanted.need)
      )
    )
  order by gates.key
$$;

create or replace function treadle.why_money(p_task treadle.tasks, p_now timestamptz)
returns table (sentence text, reason text, until timestamptz, detail jsonb)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_need numeric := treadle.remaining_cost(p_task);
begin
  if not exists (select from treadle.budgets) then
    return;
  end if;

  return query
  select
    format(
      '%s has %s left of %s (%s spent, %s reserved), but the task needs %s',
      treadle.budget_name(budgets), treadle.format_usd(room.usd), treadle.format_usd(
        budgets.limit_usd
      ),
      treadle.format_usd(budgets.limit_usd - budgets.reserved_usd - room.usd),
      treadle.format_usd(budgets.reserved_usd), coalesce(treadle.format_usd(v_need), 'some')
    ),
    'budget',
    treadle.period_start(budgets.period, p_now)
    + case when budgets.period is not null then ('1 ' || budgets.period)::interval end,
    treadle.budget_json(budgets) || jsonb_build_object('left_usd', room.usd, 'needs_usd', v_need)
  from treadle.budgets
  cross join lateral (select treadle.budget_left(budgets, p_now) as usd) as room
  where
    budgets.id = any (treadle.budgets_of(p_task, null))
    and not treadle.fits_budget(room.usd, v_need)
  order by room.usd, budgets.id;

  if not found and p_task.budget_id is not null and p_task.status = 'pending' then
    return query
    select
      treadle.budget_name(budgets) || ' has room: the next claim or the promoter releases the task',
      'admission',
      null::timestamptz,
      treadle.budget_json(budgets)
    from treadle.budgets
    where budgets.id = p_task.budget_id;
  end if;
end;
$$;

-- why_agent_budgets: no agent that could take the task has enough left in its own budget.
create or replace function treadle.why_agent_budgets(
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
  v_budgets record;
begin
  if not exists (select from treadle.budgets where budgets.scope = 'agent') then
    return;
  end if;

  select
    bool_or(
      coalesce(agent_left.usd >= coalesce(p_task.max_cost_usd - p_task.cost_usd, 0), true)
    ) as enough,
    string_agg(
      (able.agent).id || ' can spend ' || treadle.format_usd(greatest(agent_left.usd, 0)), ', '
    ) as words,
    jsonb_agg(
      jsonb_build_object('id', (able.agent).id, 'left_usd', greatest(agent_left.usd, 0))
    ) as agents
  into v_budgets
  from treadle.eligible_agents(p_lane, p_now) as able
  cross join lateral (
    select treadle.agent_budget_left((able.agent).id, p_now) as usd
  ) as agent_left;
  if coalesce(v_budgets.enough, true) then
    return;
  end if;

  sentence := format(
    'no agent that could take it has enough budget: it may cost %s, %s',
    coalesce(treadle.format_usd(p_task.max_cost_usd), 'something'), left(v_budgets.words, 300)
  );
  reason := 'agent_budget';
  detail := jsonb_build_object('agents', v_budgets.agents, 'max_cost_usd', p_task.max_cost_usd);
  return next;
end;
$$;
