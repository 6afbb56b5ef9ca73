-- check_settings: refuse settings that are not known, and a malformed retry policy among them.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_settings(p_settings jsonb, p_known text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other text;
begin
  if jsonb_typeof(p_settings) is distinct from 'object' then
    perform treadle.refuse(
      'settings must be a json object', jsonb_build_object('argument', 'settings')
    );
  end if;

  select keys.name
  into v_other
  from jsonb_object_keys(p_settings) as keys (name)
  where keys.name <> all (p_known)
  limit 1;
  if found then
    perform treadle.refuse(
      format('unknown setting %s', quote_literal(treadle.excerpt_name(v_other))),
      jsonb_build_object('argument', treadle.excerpt_name(v_other)),
      'Settings: ' || array_to_string(p_known, ', ')
    );
  end if;

  if p_settings ? 'retry' then
    perform treadle.check_retry(p_settings -> 'retry');
  end if;
end;
$$;

comment on function treadle.check_settings(jsonb, text[]) is
'Internal: refuses settings that a queue or a type does not have.';

revoke all on function treadle.check_settings(jsonb, text[]) from public;
