-- shift_at: rank_shift for a moment that is given in milliseconds, for many rows at once.
--
-- Minutes and the rest apart, so that a thousand points a minute for a century stay in a bigint.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.shift_at(p_ageing bigint, p_ms bigint)
returns bigint
language sql
immutable
parallel safe
return p_ageing * (p_ms / 60000) + p_ageing * (p_ms % 60000) / 60000;

comment on function treadle.shift_at(bigint, bigint) is
'Internal: millionths of a point gained in so many milliseconds, at a rate a minute.';

revoke all on function treadle.shift_at(bigint, bigint) from public;
grant execute on function treadle.shift_at(bigint, bigint) to treadle_observer, treadle_operator;
