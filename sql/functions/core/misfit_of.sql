-- misfit_of: the name of the first value that the column of that name does not take.
--
-- Asked when a whole row was refused: PostgreSQL says what is wrong with a value, not whose it is.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing; null when each value fits.

create or replace function treadle.misfit_of(p_row anyelement, p_given jsonb)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
begin
  for v_name in select keys.name from jsonb_object_keys(p_given) as keys (name) loop
    perform jsonb_populate_record(p_row, jsonb_build_object(v_name, p_given -> v_name));
  end loop;
  return null;
exception
  when data_exception then
    return v_name;
end;
$$;

comment on function treadle.misfit_of(anyelement, jsonb) is
'Internal: which of some values is not of the type of its column.';

revoke all on function treadle.misfit_of(anyelement, jsonb) from public;
