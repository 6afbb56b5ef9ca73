-- rank_shift: how far a moment moves the rank of a lane that ages.
--
-- Inside a lane all tasks age alike, so their order never changes: rank = priority + shift(since).
-- Across lanes the effective priority now is rank - shift(now). Whole millionths, computed exactly:
-- floating point would lose the head of a lane to rounding.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.rank_shift(p_ageing bigint, p_at timestamptz)
returns bigint
language sql
immutable
parallel safe
return treadle.shift_at(p_ageing, treadle.rank_ms(p_at));

comment on function treadle.rank_shift(bigint, timestamptz) is
'Internal: millionths of a point gained between 2025-01-01 UTC and a moment, at a rate a minute.';

revoke all on function treadle.rank_shift(bigint, timestamptz) from public;
grant execute on function treadle.rank_shift(bigint, timestamptz) to
treadle_observer, treadle_operator;
