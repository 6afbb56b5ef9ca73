-- check_document: refuse json that is missing, too large, too deep, or too long when sent.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.check_document(
  p_name       text,
  p_value      jsonb,
  p_max_bytes  integer default 1048576
)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found record := treadle.json_problem(p_value, p_max_bytes);
begin
  if p_value is null then
    perform treadle.refuse(
      format('%s is missing', p_name),
      jsonb_build_object('argument', p_name),
      'Pass a json value.'
    );
  elsif v_found.problem is not null then
    perform treadle.refuse(
      format('%s %s', p_name, v_found.problem),
      jsonb_build_object('argument', p_name, 'bytes', v_found.bytes, 'max_bytes', p_max_bytes),
      'Store the data elsewhere and pass a reference.',
      case when v_found.bytes > p_max_bytes then 'TR002' else 'TR001' end
    );
  end if;
end;
$$;

comment on function treadle.check_document(text, jsonb, integer) is
'Internal: refuses json that could not be stored or sent.';

revoke all on function treadle.check_document(text, jsonb, integer) from public;
