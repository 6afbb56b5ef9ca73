-- name_nodes: give the tasks of a DAG the defaults, and a name to those that have none.
--
-- A task without a name has that of its type, the second of its type `type-2`, and so on.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.name_nodes(p_tasks jsonb, p_defaults jsonb)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_agg(
      case
        when named.task ->> 'name' is not null then named.task
        else named.task || jsonb_build_object(
          'name',
          case
            when named.nth > 1 then (named.task ->> 'type') || '-' || named.nth
            else named.task ->> 'type'
          end
        )
      end
      order by named.at
    )
  from (
    select
      given.at,
      coalesce(p_defaults, '{}') || given.task as task,
      row_number() over (
        partition by coalesce(p_defaults, '{}') || given.task ->> 'type' order by given.at
      ) as nth
    from jsonb_array_elements(p_tasks) with ordinality as given (task, at)
  ) as named
$$;

comment on function treadle.name_nodes(jsonb, jsonb) is
'Internal: fills in what tasks of a DAG leave out.';

revoke all on function treadle.name_nodes(jsonb, jsonb) from public;
