-- deadline_step: how near a deadline is, in steps: -1 far, 0 to 6 near, 7 over.
--
-- Step 0 begins 70 minutes before, and each of the seven takes ten minutes. At its beginning step j
-- is worth 2^j points and it gains as many more until its end, in a straight line: a chord of
-- 128 * 2^(minutes / 10). All tasks of a step gain alike, so a lane keeps its order.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.deadline_step(p_deadline timestamptz, p_now timestamptz)
returns integer
language sql
immutable
parallel safe
return case
  when p_deadline is null or p_deadline > p_now + interval '70 minutes' then -1
  when p_deadline <= p_now then 7
  -- Only a deadline within reach is computed with: the others may be at the end of time.
  else floor(7 - extract(epoch from p_deadline - p_now) / 600)::integer
end;

comment on function treadle.deadline_step(timestamptz, timestamptz) is
'Internal: how near a deadline is: -1 far or none, 0 to 6, 7 over.';

revoke all on function treadle.deadline_step(timestamptz, timestamptz) from public;
