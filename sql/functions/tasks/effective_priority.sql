-- effective_priority: how urgent a task is now; lower is sooner.
--
-- Its priority, less one point for each task of the longest chain behind it, less what it gained by
-- waiting, less 128 * 2^(t / 10) points for a deadline: t is the minutes since, below zero before,
-- and 0 afterwards. Claims use straight lines between the tens of minutes, and nothing before the
-- last 70: their value differs from this one by at most 6.15 % of the last term, or by 1 point.
--
-- Raises:      TR201 task not found.

create or replace function treadle.effective_priority(p_id uuid)
returns numeric
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now   timestamptz := treadle.clock();
  v_value numeric;
begin
  select
    (
      tasks.rank
      + treadle.deadline_lift(
        tasks.deadline_at,
        treadle.placed_step(lanes.urgency, tasks.deadline_at, tasks.rerank_at)
      )
      - treadle.rank_shift(lanes.ageing - lanes.urgency, v_now)
    ) / 1000000.0
    - case
      when tasks.deadline_at <= v_now then 128
      -- Farther away it is nothing, and could not be computed.
      when tasks.deadline_at < v_now + interval '10 hours'
        then round(
          (128 * power(2, extract(epoch from v_now - tasks.deadline_at)::float8 / 600))::numeric, 6
        )
      else 0
    end
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
'Priority of a task now: its base less chain, age and deadline; lower is claimed first.';

grant execute on function treadle.effective_priority(uuid) to
treadle_producer, treadle_worker, treadle_observer;
