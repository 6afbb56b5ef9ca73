-- check_project: refuse a name or a reference that no project can have.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_project(p_name text, p_external_ref text)
returns void
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not coalesce(octet_length(p_name) <= 200 and p_name ~ '\S', false) then
    perform treadle.refuse(
      'the name of a project must have 1 to 200 bytes', jsonb_build_object('argument', 'name')
    );
  elsif octet_length(p_external_ref) > 1000 then
    perform treadle.refuse(
      'external_ref must have at most 1000 bytes', jsonb_build_object('argument', 'external_ref')
    );
  end if;
end;
$$;

comment on function treadle.check_project(text, text) is
'Internal: what projects are called here and elsewhere has a bound.';

revoke all on function treadle.check_project(text, text) from public;
