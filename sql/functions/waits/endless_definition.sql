-- endless_definition: a definition of a json schema that refers to itself without end.
--
-- A tree whose children are trees ends with the value that is checked. A definition that means
-- itself in the same place, also by way of others, would be followed for ever.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.endless_definition(p_root jsonb)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  with recursive parts as (
    select definitions.key as name, definitions.value as part
    from jsonb_each(p_root -> '$defs') as definitions
    union all
    select parts.name, choices.value
    from parts
    cross join jsonb_array_elements(parts.part -> 'anyOf') as choices
  ),

  meant as (
    select parts.name, treadle.definition_of(parts.part -> '$ref') as other
    from parts
    where parts.part ? '$ref'
  ),

  reached as (
    select meant.name, meant.other from meant
    union
    select reached.name, meant.other
    from reached
    inner join meant on reached.other = meant.name
  )

  select reached.name from reached where reached.name = reached.other order by 1 limit 1
$$;

comment on function treadle.endless_definition(jsonb) is
'Internal: the name of a definition that means itself; null when there is none.';

revoke all on function treadle.endless_definition(jsonb) from public;
