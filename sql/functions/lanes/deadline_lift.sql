-- deadline_lift: what a step of its deadline takes off the rank of a task.
--
-- Whole millionths: what one step took off, the next can give back exactly.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.deadline_lift(p_deadline timestamptz, p_step integer)
returns bigint
language sql
immutable
parallel safe
return case
  when p_deadline is null or p_step < 0 then 0
  when p_step > 6 then 128000000
  else
    (1000000::bigint << p_step)
    - treadle.rank_shift(
      treadle.deadline_rate(p_step), treadle.deadline_at_step(p_deadline, p_step)
    )
end;

comment on function treadle.deadline_lift(timestamptz, integer) is
'Internal: millionths that a step of a deadline takes off a rank.';

revoke all on function treadle.deadline_lift(timestamptz, integer) from public;
