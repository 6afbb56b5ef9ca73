-- has_room: whether so many dollars are enough for a task.
--
-- A task without a limit needs no more than that something is left.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.has_room(p_usd numeric, p_need numeric)
returns boolean
language sql
immutable
parallel safe
return case when p_need is null then p_usd > 0 else p_usd >= p_need end;

comment on function treadle.has_room(numeric, numeric) is
'Internal: whether what is left lets a task start that may cost so much.';

revoke all on function treadle.has_room(numeric, numeric) from public;
