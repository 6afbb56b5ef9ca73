-- rank: the arithmetic of ranks: ageing and deadlines.

-- deadline_rate: how fast tasks gain in a step of their deadline: 2^step points in ten minutes.
create or replace function treadle.deadline_rate(p_step integer)
returns bigint
language sql
immutable
parallel safe
return case when p_step between 0 and 6 then 100000::bigint << p_step else 0 end;

-- deadline_at_step: the moment at which a step of a deadline begins; none after the last.
create or replace function treadle.deadline_at_step(p_deadline timestamptz, p_step integer)
returns timestamptz
language sql
immutable
parallel safe
return case when p_step < 8 then p_deadline - make_interval(mins => 10 * (7 - p_step)) end;

-- deadline_step: how near a deadline is, in steps: -1 far, 0 to 6 near, 7 over.
--
-- Step 0 begins 70 minutes before, and each of the seven takes ten minutes. At its beginning step j
-- is worth 2^j points and it gains as many more until its end, in a straight line: a chord of
-- 128 * 2^(minutes / 10). All tasks of a step gain alike, so a lane keeps its order.
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

-- rank_ms: milliseconds since 2025-01-01 UTC, from which ranks count.
--
-- In UTC by name: only so is it immutable through and through, and taken into its callers.
create or replace function treadle.rank_ms(p_at timestamptz)
returns bigint
language sql
immutable
parallel safe
return ((extract(epoch from p_at at time zone 'UTC') - 1735689600) * 1000)::bigint;

comment on function treadle.rank_ms(timestamptz) is
'Internal: a moment in milliseconds since 2025-01-01 UTC.';

-- shift_at: rank_shift for a moment that is given in milliseconds, for many rows at once.
--
-- Minutes and the rest apart, so that a thousand points a minute for a century stay in a bigint.
create or replace function treadle.shift_at(p_ageing bigint, p_ms bigint)
returns bigint
language sql
immutable
parallel safe
return p_ageing * (p_ms / 60000) + p_ageing * (p_ms % 60000) / 60000;

comment on function treadle.shift_at(bigint, bigint) is
'Internal: millionths of a point gained in so many milliseconds, at a rate a minute.';

-- rank_shift: how far a moment moves the rank of a lane that ages.
--
-- Inside a lane all tasks age alike, so their order never changes: rank = priority + shift(since).
-- Across lanes the effective priority now is rank - shift(now). Whole millionths, computed exactly:
-- floating point would lose the head of a lane to rounding.
create or replace function treadle.rank_shift(p_ageing bigint, p_at timestamptz)
returns bigint
language sql
immutable
parallel safe
return treadle.shift_at(p_ageing, treadle.rank_ms(p_at));

comment on function treadle.rank_shift(bigint, timestamptz) is
'Internal: millionths of a point gained between 2025-01-01 UTC and a moment, at a rate a minute.';

-- deadline_lift: what a step of its deadline takes off the rank of a task.
--
-- Whole millionths: what one step took off, the next can give back exactly.
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

-- placed_step: the step of its deadline by which a task was placed last.
--
-- Its lane says so; outside of the seven steps, whether there is still one to come.
create or replace function treadle.placed_step(
  p_urgency    bigint,
  p_deadline   timestamptz,
  p_rerank_at  timestamptz
)
returns integer
language sql
immutable
parallel safe
return case
  when p_urgency > 0 then round(log(2, p_urgency / 100000.0))::integer
  when p_deadline is not null and p_rerank_at is null then 7
  else -1
end;

grant execute on function treadle.rank_ms(timestamptz) to treadle_observer, treadle_operator;
grant execute on function treadle.shift_at(bigint, bigint) to treadle_observer, treadle_operator;
grant execute on function treadle.rank_shift(bigint, timestamptz) to
treadle_observer, treadle_operator;
