-- pass_gates: the tasks that the rate limits let through, in their order.
--
-- Concurrency: exact: the gates are locked and written before their use is read. Gates that others
--              hold are waited for with p_wait only; else their tasks are left out.
-- Lock order:  lanes, gates by key.
-- Raises:      nothing.

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
  v_rows   tid[] := treadle.set_aside(p_rows, p_wait);
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
  -- Read when they are held: who waited must not count by a time before what others took.
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
      -- A gate that another session has in hand, or that was closed meanwhile, has no number.
      v_pass := v_pass and coalesce(
        v_left[v_task.gates[v_at]] > 0 and v_left[v_task.gates[v_at]] >= v_task.needs[v_at], false
      );
      if v_left[v_task.gates[v_at]] < greatest(v_task.needs[v_at], 0.000001) then
        -- Who comes later does not slip past, however little it needs.
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
  perform treadle.close_full(v_keys, v_short, v_used, v_now);
  return v_passed;
end;
$$;

comment on function treadle.pass_gates(tid[], boolean) is
'Internal: cuts what does not fit a limit by rate, and closes that gate until there is room.';

revoke all on function treadle.pass_gates(tid[], boolean) from public;
