-- check_schema: refuse a json schema that answers could not be checked with.
--
-- Known: type, enum, const, properties, required, additionalProperties, items, minItems, maxItems,
-- minimum, maximum, minLength, maxLength, pattern, anyOf, $ref to #/$defs. For people, and not
-- checked: title, description, default, examples, format. Any other keyword is refused: an answer
-- that looks checked and is not would be worse.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument, TR002 too large.

create or replace function treadle.check_schema(p_schema jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem text;
begin
  perform treadle.check_document('schema', p_schema, 65536);
  if jsonb_typeof(p_schema) <> 'object' then
    v_problem := 'it must be a json object';
  else
    v_problem := coalesce(
      treadle.schema_problem(p_schema, p_schema, 'schema'),
      'definition ' || treadle.endless_definition(p_schema) || ' refers to itself without end'
    );
  end if;

  if v_problem is not null then
    perform treadle.refuse(
      format('the schema of the answer cannot be used: %s', v_problem),
      jsonb_build_object('argument', 'schema', 'problem', v_problem),
      'Keywords: type, enum, const, properties, required, additionalProperties, items, minItems, '
      'maxItems, minimum, maximum, minLength, maxLength, pattern, anyOf, $ref to #/$defs; title, '
      'description, default, examples and format are for people.'
    );
  end if;
end;
$$;

comment on function treadle.check_schema(jsonb) is
'Internal: refuses a json schema with anything that is not checked.';

revoke all on function treadle.check_schema(jsonb) from public;
