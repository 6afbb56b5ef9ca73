-- pick_probe: lock one task to probe a half-open breaker.
--
-- Only one probe runs at a time: the breaker stores the claim token of its probe, and no other task
-- is picked while a task has that token. If the probe is released or cancelled, another task can be
-- picked.
--
-- Concurrency: a breaker locked by another claim is skipped.
-- Lock order:  breakers, tasks (both skip locked rows).

-- pick_probe_task: lock the best task of one type that an agent may claim, regardless of its
-- breaker.
--
-- Concurrency: skips locked rows.
-- Lock order:  tasks.
create or replace function treadle.pick_probe_task(
  p_agent   treadle.agents,
  p_queues  text[],
  p_type    text,
  p_now     timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from record;
begin
  v_from := treadle.probe_lanes(p_agent, p_queues, p_type, p_now);
  if v_from.lanes is null then
    return '{}';
  end if;
  return treadle.pick_tasks(
    v_from.lanes, v_from.shifts, 1,
    case
      when exists (select from treadle.budgets) then treadle.agent_budget_left(p_agent.id, p_now)
    end
  );
end;
$$;

create or replace function treadle.pick_probe(
  p_agent   treadle.agents,
  p_queues  text[],
  p_types   text[],
  p_token   uuid,
  p_now     timestamptz
)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_breaker treadle.breakers;
  v_rows    tid[];
begin
  for v_breaker in
    select breakers.*
    from treadle.breakers
    where breakers.probe_at <= p_now and (p_types is null or breakers.type = any (p_types))
    order by breakers.type
    for no key update skip locked
  loop
    -- A separate statement after the lock, so that it sees the claim of the session that held the
    -- lock.
    continue when exists (
      select from treadle.tasks
      where tasks.id = v_breaker.probe_task and tasks.claim_token = v_breaker.probe_token
    );
    v_rows := treadle.pick_probe_task(p_agent, p_queues, v_breaker.type, p_now);
    continue when v_rows = '{}';

    update treadle.breakers
    set
      state = 'half_open',
      probe_task = (select tasks.id from treadle.tasks where tasks.ctid = v_rows[1]),
      probe_token = p_token
    where breakers.type = v_breaker.type;
    if v_breaker.state = 'open' then
      insert into treadle.events (at, kind, actor, data)
      values (
        p_now, 'breaker.half_opened', p_agent.id,
        jsonb_build_object('type', v_breaker.type, 'opened_at', v_breaker.opened_at)
      );
    end if;
    return v_rows;
  end loop;
  return '{}';
end;
$$;
