-- work_priority: the priority of a task on the scale of the work API, 1 (highest) to 5.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.work_priority(p_priority smallint)
returns integer
language sql
immutable
parallel safe
return pg_catalog.array_position(
  array['critical', 'high', 'normal', 'low', 'background'],
  treadle.tier_of_priority(p_priority)
);

comment on function treadle.work_priority(smallint) is
'Internal: the number of the tier that a priority is in.';

revoke all on function treadle.work_priority(smallint) from public;
grant execute on function treadle.work_priority(smallint) to treadle_observer, treadle_operator;
