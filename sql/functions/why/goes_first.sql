-- goes_first: whether the next claim of one task by an agent takes this one.
--
-- It plays claim_rows: what is first and has no money or finds its gate full is put aside and the
-- next one looked at, as often as a claim does. Where it cannot be sure it says no: somebody may
-- be let in before the claim, or projects take turns.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.goes_first(
  p_task   treadle.tasks,
  p_agent  treadle.agents,
  p_now    timestamptz
)
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_spend numeric := treadle.agent_can_spend(p_agent.id, p_now);
  v_probe uuid := treadle.probe_for(p_agent, p_now);
  v_aside uuid[] := '{}';
  v_moved text[] := '{}';
  v_open  record;
  v_task  treadle.tasks;
  v_keys  text[];
  v_large boolean;
  v_shut  text;
begin
  v_open := treadle.open_lanes(
    p_agent, array(select queues.name from treadle.queues where queues.name = any (p_agent.queues)),
    p_agent.task_types, p_now
  );
  if treadle.may_admit() or treadle.are_turns(v_open.lanes, v_open.projects, v_open.fair) then
    return false;
  end if;

  for v_round in 1..10 loop
    select tasks.*
    into v_task
    from treadle.tasks
    where
      tasks.id = coalesce(
        v_probe, treadle.head_of(v_open.lanes, v_open.shifts, v_spend, v_aside)
      );
    exit when not found;
    if exists (
      select from treadle.why_money(v_task, p_now) as money where money.reason = 'budget'
    ) then
      v_aside := v_aside || v_task.id;
      v_probe := null;
      continue;
    end if;

    select array_agg(rates.detail ->> 'gate'), coalesce(bool_or(rates.reason = 'gate_size'), false)
    into v_keys, v_large
    from treadle.lanes
    cross join lateral treadle.why_rates(v_task, lanes, p_now) as rates
    where lanes.id = v_task.lane_id;
    if v_keys is null then
      return v_task.id = p_task.id;
    end if;
    if v_large then
      -- It is put aside; in later rounds only where others of its lane have been before.
      v_shut := treadle.too_large(v_task);
      exit when v_round > 1 and not v_task.lane_id || v_shut = any (v_moved) and not exists (
        select
        from treadle.lanes
        inner join treadle.gates on gates.key = v_shut
        where
          lanes.id = v_task.lane_id and treadle.lane_behind(lanes, v_shut) is not null
      );
      v_moved := v_moved || (v_task.lane_id || v_shut);
    end if;
    v_aside := v_aside || v_task.id;
    v_probe := null;
    select array_agg(lane.id), array_agg(lane.shift)
    into v_open.lanes, v_open.shifts
    from unnest(v_open.lanes, v_open.shifts) as lane (id, shift)
    inner join treadle.lanes on lane.id = lanes.id
    where v_large or not lanes.gates && v_keys;
  end loop;
  return false;
end;
$$;

comment on function treadle.goes_first(treadle.tasks, treadle.agents, timestamptz) is
'Internal: whether an agent that has room gets this task if it claims one now.';

revoke all on function treadle.goes_first(treadle.tasks, treadle.agents, timestamptz) from public;
