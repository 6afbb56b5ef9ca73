-- urgency_of_priority: the urgency from 1 to 10 that is nearest to a priority.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.urgency_of_priority(p_priority integer)
returns smallint
language plpgsql
immutable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_priority is null or p_priority not between 0 and 100 then
    perform treadle.refuse_priority(p_priority);
  end if;
  return greatest(1, 10 - p_priority / 10);
end;
$$;

comment on function treadle.urgency_of_priority(integer) is
'The urgency for a priority: 10 for 0 to 9, 9 for 10 to 19, down to 1 for 90 to 100.';

revoke all on function treadle.urgency_of_priority(integer) from public;
grant execute on function treadle.urgency_of_priority(integer) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
