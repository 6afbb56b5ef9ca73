-- node_refs: what the tasks of a DAG refer to: by after, and by inputs.
--
-- An input is a dependency too; after may say that it is optional.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.node_refs(p_tasks jsonb)
returns table (at integer, ref text, optional boolean)
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong record;
begin
  return query
  select given.at, given.ref, bool_and(given.optional) filter (where given.source = 'after')
    is true
  from (
    select
      nodes.at::integer as at,
      case
        when jsonb_typeof(edges.edge) = 'object' then edges.edge ->> 'task'
        else edges.edge #>> '{}'
      end as ref,
      coalesce(edges.edge -> 'optional' = 'true', false) as optional,
      'after' as source
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    cross join lateral jsonb_array_elements(nodes.task -> 'after') as edges (edge)
    where jsonb_typeof(nodes.task -> 'after') = 'array'
    union all
    select
      nodes.at::integer, (regexp_match(inputs.value, '^task:([^:]+):'))[1], false, 'inputs'
    from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
    cross join lateral jsonb_each_text(nodes.task -> 'inputs') as inputs
    where jsonb_typeof(nodes.task -> 'inputs') = 'object' and inputs.value like 'task:%'
  ) as given
  group by given.at, given.ref;

  select nodes.at - 1 as at, inputs.key, inputs.value
  into v_wrong
  from jsonb_array_elements(p_tasks) with ordinality as nodes (task, at)
  cross join lateral jsonb_each(nodes.task -> 'inputs') as inputs
  where
    jsonb_typeof(nodes.task -> 'inputs') = 'object'
    and not coalesce(
      inputs.value #>> '{}'
      ~ '^(task:[^:]+:(output(\.[^.]+)*|artifact:.+)|artifact:[0-9a-f-]{36})$',
      false
    )
  limit 1;
  if found then
    perform treadle.refuse(
      format(
        'input %s refers to %s',
        treadle.excerpt_name(v_wrong.key), treadle.excerpt(v_wrong.value)
      ),
      jsonb_build_object(
        'argument', 'inputs', 'index', v_wrong.at, 'input', treadle.excerpt_name(v_wrong.key)
      ),
      'Write task:<name or id>:output, task:<name or id>:output.key, '
      || 'task:<name or id>:artifact:<name>, or artifact:<id>.'
    );
  end if;
end;
$$;

comment on function treadle.node_refs(jsonb) is
'Internal: the references between the tasks of a DAG, as they were written.';

revoke all on function treadle.node_refs(jsonb) from public;
