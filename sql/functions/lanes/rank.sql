-- rank: compute ranks from priority, ageing and deadlines.

-- deadline_rate: return how fast tasks gain priority in a step of their deadline: 2^step points in
-- ten minutes.
create or replace function treadle.deadline_rate(p_step integer)
returns bigint
language sql
immutable
parallel safe
return case when p_step between 0 and 6 then 100000::bigint << p_step else 0 end;

-- deadline_at_step: return the time at which a step of a deadline begins; null after the last step.
create or replace function treadle.deadline_at_step(p_deadline timestamptz, p_step integer)
returns timestamptz
language sql
immutable
parallel safe
return case when p_step < 8 then p_deadline - make_interval(mins => 10 * (7 - p_step)) end;

-- deadline_step: return how close a deadline is, in steps: -1 far, 0 to 6 close, 7 passed.
--
-- Step 0 begins 70 minutes before the deadline, and each of the seven steps takes ten minutes. At
-- its beginning step j is worth 2^j points, and it gains as many more until its end, linearly: a
-- chord of 128 * 2^(minutes / 10). All tasks of a step gain at the same rate, so a lane keeps its
-- order.
create or replace function treadle.deadline_step(p_deadline timestamptz, p_now timestamptz)
returns integer
language sql
immutable
parallel safe
return case
  when p_deadline is null or p_deadline > p_now + interval '70 minutes' then -1
  when p_deadline <= p_now then 7
  -- Only deadlines in range are computed; others may be near infinity.
  else floor(7 - extract(epoch from p_deadline - p_now) / 600)::integer
end;

-- rank_ms: convert a time to milliseconds since 2025-01-01 UTC, the origin of ranks.
--
-- The time zone is named, because only then is the function immutable and can be inlined.
create or replace function treadle.rank_ms(p_at timestamptz)
returns bigint
language sql
immutable
parallel safe
return ((extract(epoch from p_at at time zone 'UTC') - 1735689600) * 1000)::bigint;

comment on function treadle.rank_ms(timestamptz) is
'A time in milliseconds since 2025-01-01 UTC.';

-- ageing_offset_at: compute ageing_offset for a time in milliseconds, for many rows at once.
--
-- Minutes and the rest are multiplied separately, so that 1000 points a minute for a century fit in
-- a bigint.
create or replace function treadle.ageing_offset_at(p_ageing bigint, p_ms bigint)
returns bigint
language sql
immutable
parallel safe
return p_ageing * (p_ms / 60000) + p_ageing * (p_ms % 60000) / 60000;

comment on function treadle.ageing_offset_at(bigint, bigint) is
'Millionths of a point gained in a number of milliseconds, at a rate per minute.';

-- ageing_offset: return how far a time moves the rank in a lane with ageing.
--
-- In a lane all tasks age at the same rate, so their order never changes: rank = priority +
-- shift(since). Across lanes the current effective priority is rank - shift(now). Values are whole
-- millionths and exact; floating point would misorder the first tasks of a lane by rounding.
create or replace function treadle.ageing_offset(p_ageing bigint, p_at timestamptz)
returns bigint
language sql
immutable
parallel safe
return treadle.ageing_offset_at(p_ageing, treadle.rank_ms(p_at));

comment on function treadle.ageing_offset(bigint, timestamptz) is
'Millionths of a point gained from 2025-01-01 UTC to a time, at a rate per minute.';

-- deadline_rank_offset: return how much a step of its deadline reduces the rank of a task.
--
-- In whole millionths, so that the next step can undo it exactly.
create or replace function treadle.deadline_rank_offset(p_deadline timestamptz, p_step integer)
returns bigint
language sql
immutable
parallel safe
return case
  when p_deadline is null or p_step < 0 then 0
  when p_step > 6 then 128000000
  else
    (1000000::bigint << p_step)
    - treadle.ageing_offset(
      treadle.deadline_rate(p_step), treadle.deadline_at_step(p_deadline, p_step)
    )
end;

-- current_deadline_step: return the deadline step that the current rank of a task is based on.
--
-- The lane determines it; outside the seven steps it depends on whether a step is still to come.
create or replace function treadle.current_deadline_step(
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
grant execute on function treadle.ageing_offset_at(bigint, bigint) to
treadle_observer, treadle_operator;
grant execute on function treadle.ageing_offset(bigint, timestamptz) to
treadle_observer, treadle_operator;
