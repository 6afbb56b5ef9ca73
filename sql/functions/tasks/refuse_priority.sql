-- refuse_priority: raise for a number that is no priority.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.refuse_priority(p_priority integer)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.refuse(
    format('there is no priority %s', coalesce(p_priority::text, 'null')),
    jsonb_build_object('argument', 'priority'),
    'A priority is 0 (critical) to 100 (background).'
  );
end;
$$;

comment on function treadle.refuse_priority(integer) is
'Internal: says which priorities there are.';

revoke all on function treadle.refuse_priority(integer) from public;
