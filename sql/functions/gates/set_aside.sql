-- set_aside: put tasks that need more than a whole limit behind a gate that stays closed.
--
-- They can never start, and must not stand in the way. The gate is named after the limit:
-- another limit has another one, and what waits behind the old one is looked at again.
--
-- Concurrency: the caller holds the tasks. Without p_wait nothing is made that another claim
--              could be making: two that hold gates must not wait for each other.
-- Lock order:  lanes, gates.
-- Raises:      nothing.

create or replace function treadle.set_aside(p_rows tid[], p_wait boolean)
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
      tasks.ctid as place, lanes as lane, limited.key, limited.shut,
      exists (select from treadle.gates where gates.key = limited.shut) as is_shut
    from treadle.tasks
    inner join treadle.lanes on tasks.lane_id = lanes.id
    cross join lateral (
      select gates.key, format('over:%s:%s', gates.amount, gates.key) as shut
      from treadle.gates
      where
        gates.key = any (lanes.gates)
        and gates.amount < treadle.gate_need(tasks, gates.unit)
      order by gates.key
      limit 1
    ) as limited
    where tasks.ctid = any (p_rows)
    order by limited.shut, tasks.id
  loop
    v_large := v_large || v_each.place;
    if not v_each.is_shut then
      continue when not p_wait;
      insert into treadle.gates (key, closed_until, closed_at, reason)
      values (
        v_each.shut, v_now + interval '100 years', v_now,
        format('needs more than the whole limit of %s', v_each.key)
      )
      on conflict (key) do nothing;
    end if;
    v_lane := treadle.lane_behind(v_each.lane, v_each.shut, p_wait);
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

comment on function treadle.set_aside(tid[], boolean) is
'Internal: the tasks that fit their limits; the others wait in a lane of their own.';

revoke all on function treadle.set_aside(tid[], boolean) from public;
