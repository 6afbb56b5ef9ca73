-- rank_ms: milliseconds since 2025-01-01 UTC, from which ranks count.
--
-- In UTC by name: only so is it immutable through and through, and taken into its callers.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.rank_ms(p_at timestamptz)
returns bigint
language sql
immutable
parallel safe
return ((extract(epoch from p_at at time zone 'UTC') - 1735689600) * 1000)::bigint;

comment on function treadle.rank_ms(timestamptz) is
'Internal: a moment in milliseconds since 2025-01-01 UTC.';

revoke all on function treadle.rank_ms(timestamptz) from public;
grant execute on function treadle.rank_ms(timestamptz) to treadle_observer, treadle_operator;
