-- deadline_rate: how fast tasks gain in a step of their deadline: 2^step points in ten minutes.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.deadline_rate(p_step integer)
returns bigint
language sql
immutable
parallel safe
return case when p_step between 0 and 6 then 100000::bigint << p_step else 0 end;

comment on function treadle.deadline_rate(integer) is
'Internal: millionths of a point a minute in a step of a deadline.';

revoke all on function treadle.deadline_rate(integer) from public;
