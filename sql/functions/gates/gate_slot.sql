-- gate_slot: the sixtieth of a period that a moment falls into, counted from 1970.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.gate_slot(p_at timestamptz, p_period_s double precision)
returns bigint
language sql
immutable
parallel safe
return floor(extract(epoch from p_at) * 60 / p_period_s::numeric)::bigint;

comment on function treadle.gate_slot(timestamptz, double precision) is
'Internal: the number of the sixtieth of a period.';

revoke all on function treadle.gate_slot(timestamptz, double precision) from public;
