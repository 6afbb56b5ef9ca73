-- mask_json: the detail of an error, without what looks like a credential.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.mask_json(p_value jsonb)
returns jsonb
language plpgsql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  return case jsonb_typeof(p_value)
    when 'string' then to_jsonb(treadle.mask_text(p_value #>> '{}'))
    when 'object' then coalesce(
      (
        select jsonb_object_agg(treadle.mask_text(parts.key), treadle.mask_json(parts.value))
        from jsonb_each(p_value) as parts
      ),
      '{}'
    )
    when 'array' then coalesce(
      (
        select jsonb_agg(treadle.mask_json(parts.value) order by parts.at)
        from jsonb_array_elements(p_value) with ordinality as parts (value, at)
      ),
      '[]'
    )
    else p_value
  end;
end;
$$;

comment on function treadle.mask_json(jsonb) is
'Internal: replaces what looks like a credential in the detail of an error.';

revoke all on function treadle.mask_json(jsonb) from public;
