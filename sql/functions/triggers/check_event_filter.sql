-- check_event_filter: refuse a filter that names what no event has, and so lets none pass.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.check_event_filter(p_filter jsonb, p_known text[])
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other text;
begin
  select keys.name
  into v_other
  from jsonb_object_keys(p_filter) as keys (name)
  where keys.name <> all (p_known)
  limit 1;
  if found then
    perform treadle.refuse(
      format(
        'this filter lets nothing pass: no event has %s',
        quote_literal(treadle.excerpt_name(v_other))
      ),
      jsonb_build_object('argument', 'filter', 'key', treadle.excerpt_name(v_other)),
      format('It knows %s.', array_to_string(p_known, ', '))
    );
  end if;
end;
$$;

comment on function treadle.check_event_filter(jsonb, text[]) is
'Internal: refuses keys of a filter of events that are not known.';

revoke all on function treadle.check_event_filter(jsonb, text[]) from public;
