-- effective_priority: return how urgent a task is now; lower is sooner.
--
-- This is its priority, minus one point for each task of the longest chain behind it, minus what it
-- gained by waiting, minus 128 * 2^(t / 10) points for a deadline, where t is the minutes since the
-- deadline, negative before it and 0 afterwards. Claims use linear steps of ten minutes, and
-- nothing before the last 70 minutes: their value differs by at most 6.15 % of the last term, or by
-- 1 point.
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
      + treadle.deadline_rank_offset(
        tasks.deadline_at,
        treadle.current_deadline_step(lanes.urgency, tasks.deadline_at, tasks.rerank_at)
      )
      - treadle.ageing_offset(lanes.ageing - lanes.urgency, v_now)
    ) / 1000000.0
    - case
      when tasks.deadline_at <= v_now then 128
      -- Further away the term is negligible, and could not be computed.
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
    perform treadle.raise_invalid_transition(p_id, 'ready');
  end if;
  return v_value;
end;
$$;

comment on function treadle.effective_priority(uuid) is
'Current priority of a task: its base minus chain, age and deadline; lower is claimed first.';

grant execute on function treadle.effective_priority(uuid) to
treadle_producer, treadle_worker, treadle_observer;
