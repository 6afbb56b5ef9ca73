-- effective_priority: how urgent a task is now; lower is sooner.
--
-- Its priority less what it gained by waiting.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR201 task not found.

create or replace function treadle.effective_priority(p_id uuid)
returns numeric
language plpgsql
stable
security definer
set search_path = ''
as $$
declare
  v_value numeric;
begin
  select (tasks.rank - treadle.rank_shift(lanes.ageing, treadle.clock())) / 1000000.0
  into v_value
  from treadle.tasks
  inner join treadle.lanes on tasks.lane_id = lanes.id
  where tasks.id = p_id;
  if not found then
    perform treadle.refuse_transition(p_id, 'ready');
  end if;
  return v_value;
end;
$$;

comment on function treadle.effective_priority(uuid) is
'Priority of a task now: its base less its age times the rate; lower is claimed first.';

revoke all on function treadle.effective_priority(uuid) from public;
grant execute on function treadle.effective_priority(uuid) to
treadle_producer, treadle_worker, treadle_observer;
