-- tier_of_priority: the name of the tier that a priority is in.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.tier_of_priority(p_priority integer)
returns text
language plpgsql
immutable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_priority is null or p_priority not between 0 and 100 then
    perform treadle.refuse_priority(p_priority);
  end if;
  return case
    when p_priority < 10 then 'critical'
    when p_priority < 30 then 'high'
    when p_priority < 60 then 'normal'
    when p_priority < 80 then 'low'
    else 'background'
  end;
end;
$$;

comment on function treadle.tier_of_priority(integer) is
'The tier of a priority: critical 0-9, high 10-29, normal 30-59, low 60-79, background 80-100.';

revoke all on function treadle.tier_of_priority(integer) from public;
grant execute on function treadle.tier_of_priority(integer) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
