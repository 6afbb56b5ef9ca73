-- bind_inputs: put ids in the place of names where the inputs of a task refer to others.
--
-- Concurrency: reads.
-- Lock order:  none.
-- Raises:      TR001 invalid argument.

create or replace function treadle.bind_inputs(p_inputs jsonb, p_ids jsonb, p_dag uuid)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select
    jsonb_object_agg(
      inputs.key,
      case
        when inputs.value not like 'task:%' then inputs.value
        else format(
          'task:%s:%s',
          coalesce(
            p_ids ->> split_part(inputs.value, ':', 2),
            treadle.task_named(split_part(inputs.value, ':', 2), p_dag)::text
          ),
          substr(inputs.value, length(split_part(inputs.value, ':', 2)) + 7)
        )
      end
    )
  from jsonb_each_text(p_inputs) as inputs
$$;

comment on function treadle.bind_inputs(jsonb, jsonb, uuid) is
'Internal: task:<name>:output becomes task:<id>:output.';

revoke all on function treadle.bind_inputs(jsonb, jsonb, uuid) from public;
