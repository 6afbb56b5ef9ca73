-- priority_of_urgency: the priority for an urgency of 1 (no hurry) to 10 (now).
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.priority_of_urgency(p_urgency integer)
returns smallint
language plpgsql
immutable
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_urgency is null or p_urgency not between 1 and 10 then
    perform treadle.refuse(
      format('there is no urgency %s', coalesce(p_urgency::text, 'null')),
      jsonb_build_object('argument', 'urgency'),
      'An urgency is 1 (no hurry) to 10 (now): it stands for the priorities 95 to 5.'
    );
  end if;
  return 105 - 10 * p_urgency;
end;
$$;

comment on function treadle.priority_of_urgency(integer) is
'The priority for an urgency of 1 to 10: 95 to 5, in tens.';

revoke all on function treadle.priority_of_urgency(integer) from public;
grant execute on function treadle.priority_of_urgency(integer) to
treadle_producer, treadle_worker, treadle_observer, treadle_operator;
