-- pass_gates: return the tasks that the rate limits allow to start, in their order.
--
-- Concurrency: exact, because the gates are locked and updated before their use is read. Gates
-- locked by others are waited for only with p_wait; otherwise their tasks are left out.
-- Lock order:  lanes, gates by key.

-- divert_oversized_tasks: move tasks that need more than a whole limit behind a gate that stays
-- closed.
--
-- These tasks can never start and must not block others. The gate is named after the limit: a
-- changed limit has another gate, and tasks behind the old one are checked again.
--
-- Concurrency: the caller has locked the tasks. Without p_wait no row is created that another claim
-- could be creating, because two sessions that hold gates must not wait for each other.
-- Lock order:  lanes, gates.
create or replace function treadle.divert_oversized_tasks(p_rows tid[], p_wait boolean)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_large tid[] := '{}';
  v_lane  integer;
  v_each  record;
  v_now   timestamptz := treadle.clock();
begin
  for v_each in
    select
      tasks.ctid as place, lanes as lane, limited.key, limited.gate,
      exists (select from treadle.gates where gates.key = limited.gate) as gate_exists
    from treadle.tasks
    inner join treadle.lanes on tasks.lane_id = lanes.id
    cross join lateral (
      select gates.key, format('over:%s:%s', gates.amount, gates.key) as gate
      from treadle.gates
      where
        gates.key = any (lanes.gates)
        and gates.amount < treadle.gate_need(tasks, gates.unit)
      order by gates.key
      limit 1
    ) as limited
    where tasks.ctid = any (p_rows)
    order by limited.gate, tasks.id
  loop
    v_large := v_large || v_each.place;
    if not v_each.gate_exists then
      continue when not p_wait;
      insert into treadle.gates (key, closed_until, closed_at, reason)
      values (
        v_each.gate, v_now + interval '100 years', v_now,
        format('the task needs more than the whole limit of %s', v_each.key)
      )
      on conflict (key) do nothing;
    end if;
    v_lane := treadle.lane_with_gate(v_each.lane, v_each.gate, p_wait);
    update treadle.tasks
    set lane_id = v_lane
    where tasks.ctid = v_each.place and v_lane is not null;
  end loop;
  return array(
    select given.place from unnest(p_rows) with ordinality as given (place, at)
    where given.place <> all (v_large)
    order by given.at
  );
end;
$$;

-- close_exhausted_gates: close gates whose limit stopped a task, until there is room for it.
--
-- Concurrency: the caller has locked the gates.
-- Lock order:  gates.
create or replace function treadle.close_exhausted_gates(
  p_keys   text[],
  p_short  numeric[],
  p_used   numeric[],
  p_now    timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_until timestamptz;
begin
  with closed as (
    update treadle.gates
    set
      closed_until = treadle.next_room_at(gates.key, given.short, given.used, p_now),
      closed_at = p_now,
      closed_by = null,
      reason = 'rate limit'
    from unnest(p_keys, p_short, p_used) as given (key, short, used)
    where gates.key = given.key and given.short is not null
    returning gates.closed_until
  )

  select min(closed.closed_until) into v_until from closed;
  perform treadle.notify_promoter(v_until);
end;
$$;

create or replace function treadle.pass_gates(p_rows tid[], p_wait boolean)
returns tid[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  v_rows   tid[] := treadle.divert_oversized_tasks(p_rows, p_wait);
  v_passed tid[] := '{}';
  v_keys   text[];
  v_left   numeric[];
  v_used   numeric[];
  v_short  numeric[];
  v_task   record;
  v_pass   boolean;
  v_now    timestamptz;
begin
  v_keys := treadle.lock_gates(
    array(
      select distinct gates.key
      from treadle.tasks
      inner join treadle.lanes on tasks.lane_id = lanes.id
      inner join treadle.gates on gates.key = any (lanes.gates)
      where tasks.ctid = any (v_rows) and gates.unit is not null
    ),
    p_wait
  );
  -- Read after the locks are held, so that a session that waited does not use an older time.
  v_now := treadle.clock();
  v_left := treadle.gate_room(v_keys, v_now);
  v_used := array_fill(0::numeric, array[cardinality(v_keys)]);
  v_short := array_fill(null::numeric, array[cardinality(v_keys)]);

  for v_task in
    select
      given.place,
      array_agg(array_position(v_keys, gates.key)) filter (where gates.key is not null) as gates,
      array_agg(treadle.gate_need(tasks, gates.unit)) filter (where gates.key is not null) as needs
    from unnest(v_rows) with ordinality as given (place, at)
    inner join treadle.tasks on given.place = tasks.ctid
    inner join treadle.lanes on tasks.lane_id = lanes.id
    left join treadle.gates on gates.key = any (lanes.gates) and gates.unit is not null
    group by given.place, given.at
    order by given.at
  loop
    v_pass := true;
    for v_at in 1..coalesce(cardinality(v_task.gates), 0) loop
      -- A gate that another session has locked, or that was closed in the meantime, has no number.
      v_pass := v_pass and coalesce(
        v_left[v_task.gates[v_at]] > 0 and v_left[v_task.gates[v_at]] >= v_task.needs[v_at], false
      );
      if v_left[v_task.gates[v_at]] < greatest(v_task.needs[v_at], 0.000001) then
        -- A later task does not overtake an earlier one, however little it needs.
        v_left[v_task.gates[v_at]] := null;
        v_short[v_task.gates[v_at]] := v_task.needs[v_at];
      end if;
    end loop;
    continue when not v_pass;
    for v_at in 1..coalesce(cardinality(v_task.gates), 0) loop
      v_left[v_task.gates[v_at]] := v_left[v_task.gates[v_at]] - v_task.needs[v_at];
      v_used[v_task.gates[v_at]] := v_used[v_task.gates[v_at]] + v_task.needs[v_at];
    end loop;
    v_passed := v_passed || v_task.place;
  end loop;
  perform treadle.close_exhausted_gates(v_keys, v_short, v_used, v_now);
  return v_passed;
end;
$$;
