-- broken_rule: what was wrong with a row that a constraint refused, by the names of its columns.
--
-- Asked where a refusal is put into words: PostgreSQL names the constraint, which says nothing to
-- whoever gave the values.
--
-- Concurrency: reads the catalogue.
-- Lock order:  none.
-- Raises:      nothing; where no constraint is named, the answer is the error as it was.

create or replace function treadle.broken_rule(p_error text, p_constraint text, p_column text)
returns text
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    nullif(p_column, '') || ' is missing',
    (
      select string_agg(attribute.attname, ' or ' order by attribute.attnum) || ' is not valid'
      from pg_catalog.pg_constraint as rule
      inner join pg_catalog.pg_attribute as attribute
        on rule.conrelid = attribute.attrelid and attribute.attnum = any (rule.conkey)
      where rule.connamespace = 'treadle'::pg_catalog.regnamespace and rule.conname = p_constraint
    ),
    p_error
  )
$$;

comment on function treadle.broken_rule(text, text, text) is
'Internal: an error of a constraint in words, from what the diagnostics say of it.';

revoke all on function treadle.broken_rule(text, text, text) from public;
