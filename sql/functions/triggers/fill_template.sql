-- fill_template: fill the placeholders of a template with values of an event.
--
-- {"$event": "data.url"} replaces a whole value, never part of a text; "default" is used if the
-- event has no such value. Values from the event are not expanded again. Without an event the
-- result is a sample: defaults, otherwise null.
--
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
    perform treadle.raise_error(
      format('the event has no %s', treadle.excerpt_name(p_value ->> '$event')),
      jsonb_build_object('argument', 'template'),
      'Add a default: {"$event": "data.url", "default": null}.'
    );
  end if;
  return v_found;
end;
$$;

-- without_nulls: return an object without top-level nulls, and without nulls in its lists.
create or replace function treadle.without_nulls(p_object jsonb)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    coalesce(
      jsonb_object_agg(
        part.key,
        case jsonb_typeof(part.value)
          when 'array'
            then jsonb_path_query_array(part.value, 'strict $[*] ? (@.type() != "null")')
          else part.value
        end
      ),
      '{}'
    )
  from jsonb_each(p_object) as part
  where part.value <> 'null'
$$;

-- enqueue_filled_template: enqueue the task or DAG of a filled template.
--
-- The origin of the tasks is the trigger, unless the template says otherwise.
--
-- Concurrency: see enqueue_tasks and create_dag.
-- Lock order:  tasks, lanes, dags.
-- Raises:      what enqueue_tasks and create_dag raise.
create or replace function treadle.enqueue_filled_template(
  p_trigger     treadle.triggers,
  p_filled      jsonb,
  out task_id   uuid,
  out dag_id    uuid
)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_origin jsonb := treadle.origin('trigger', p_trigger.name);
  v_author jsonb := jsonb_build_object('created_by', p_trigger.created_by);
  v_dag    jsonb := treadle.without_nulls(p_filled -> 'dag');
begin
  if p_filled ? 'task' then
    select made.id
    into task_id
    from treadle.enqueue_tasks(
      jsonb_build_array(v_origin || v_author || treadle.without_nulls(p_filled -> 'task'))
    ) as made;
    return;
  end if;

  select made.dag_id
  into dag_id
  from treadle.create_dag(
    v_author || v_dag || jsonb_build_object(
      'defaults', v_origin || coalesce(v_dag -> 'defaults', '{}'),
      'tasks',
      (
        select jsonb_agg(treadle.without_nulls(node.task) order by node.at)
        from jsonb_array_elements(v_dag -> 'tasks') with ordinality as node (task, at)
      )
    )
  ) as made;
end;
$$;
