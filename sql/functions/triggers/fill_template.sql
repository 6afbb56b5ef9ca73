-- fill_template: put values of an event into a template.
--
-- {"$event": "data.url"} stands for a whole value, never for a part of a text; "default" is for an
-- event that has none. What comes from the event is not looked at again. Without facts the result
-- is a sample: defaults, else null.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.fill_template(p_value jsonb, p_facts jsonb)
returns jsonb
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found jsonb;
begin
  if jsonb_typeof(p_value) = 'array' then
    return coalesce(
      (
        select jsonb_agg(treadle.fill_template(part.value, p_facts) order by part.at)
        from jsonb_array_elements(p_value) with ordinality as part (value, at)
      ),
      '[]'
    );
  elsif jsonb_typeof(p_value) <> 'object' then
    return p_value;
  elsif not p_value ? '$event' then
    return coalesce(
      (
        select jsonb_object_agg(part.key, treadle.fill_template(part.value, p_facts))
        from jsonb_each(p_value) as part
      ),
      '{}'
    );
  end if;

  v_found := coalesce(
    p_facts #> string_to_array(p_value ->> '$event', '.'),
    p_value -> 'default',
    case when p_facts is null then 'null'::jsonb end
  );
  if v_found is null then
    perform treadle.refuse(
      format('the event has no %s', treadle.excerpt_name(p_value ->> '$event')),
      jsonb_build_object('argument', 'template'),
      'Give it a default: {"$event": "data.url", "default": null}.'
    );
  end if;
  return v_found;
end;
$$;

comment on function treadle.fill_template(jsonb, jsonb) is
'Internal: a template with the values of an event.';

revoke all on function treadle.fill_template(jsonb, jsonb) from public;
