-- is_full: whether a gate was closed by its own limit, not by a person or a provider.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.is_full(p_gate treadle.gates)
returns boolean
language sql
immutable
parallel safe
return p_gate.unit is not null and p_gate.closed_by is null and p_gate.reason = 'rate limit';

comment on function treadle.is_full(treadle.gates) is
'Internal: a gate that a claim closed because its limit by rate was reached.';

revoke all on function treadle.is_full(treadle.gates) from public;
grant execute on function treadle.is_full(treadle.gates) to treadle_observer, treadle_operator;
