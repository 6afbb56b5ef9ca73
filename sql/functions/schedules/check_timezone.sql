-- check_timezone: refuse a time zone that the server does not know.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_timezone(p_timezone text)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform treadle.clock() at time zone p_timezone;
exception
  when invalid_parameter_value then
    perform treadle.refuse(
      format('there is no time zone %s', left(quote_nullable(p_timezone), 80)),
      jsonb_build_object('argument', 'timezone'),
      'For example Europe/Berlin, America/New_York or UTC.'
    );
end;
$$;

comment on function treadle.check_timezone(text) is
'Internal: refuses a time zone that is not known.';

revoke all on function treadle.check_timezone(text) from public;
