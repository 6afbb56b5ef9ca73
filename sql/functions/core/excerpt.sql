-- excerpt: shorten a value for an error message: enough to find it without repeating it.
--
-- select treadle.excerpt('"correct horse"');  -- "corr..."

create or replace function treadle.excerpt(p_value jsonb)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case jsonb_typeof(p_value)
    when 'string' then
      '"' || left(p_value #>> '{}', 4)
      || case when char_length(p_value #>> '{}') > 4 then '...' else '' end || '"'
    when 'object' then 'an object'
    when 'array' then 'an array'
    else left(p_value::text, 30)
  end
$$;

-- excerpt_name: shorten a name for an error message, such as an unknown key of a document.
--
-- A mistyped option stays readable; a long text used as a name is not repeated.
create or replace function treadle.excerpt_name(p_name text)
returns text
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case when char_length(p_name) <= 30 then p_name else left(p_name, 4) || '...' end
$$;
