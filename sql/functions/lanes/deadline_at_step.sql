-- deadline_at_step: the moment at which a step of a deadline begins; none after the last.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.deadline_at_step(p_deadline timestamptz, p_step integer)
returns timestamptz
language sql
immutable
parallel safe
return case when p_step < 8 then p_deadline - make_interval(mins => 10 * (7 - p_step)) end;

comment on function treadle.deadline_at_step(timestamptz, integer) is
'Internal: when a step of a deadline begins.';

revoke all on function treadle.deadline_at_step(timestamptz, integer) from public;
