-- fill_template: put values of an event into a template.
--
-- {"$event": "data.url"} stands for a whole value, never for a part of a text; "default" is for an
-- event that has none. What comes from the event is not looked at again. Without facts the result
-- is a sample: defaults, else null.
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
    perform treadle.refuse(
      format('the event has no %s', treadle.excerpt_name(p_value ->> '$event')),
      jsonb_build_object('argument', 'template'),
      'Give it a default: {"$event": "data.url", "default": null}.'
    );
  end if;
  return v_found;
end;
$$;

-- without_nulls: an object without those of its own keys that have no value.
create or replace function treadle.without_nulls(p_object jsonb)
returns jsonb
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(part.key, part.value), '{}')
  from jsonb_each(p_object) as part
  where part.value <> 'null'
$$;

-- make_from: enqueue what a template that is filled in describes: a task, or a DAG.
--
-- Its tasks say where they come from: source is trigger, source_job is the trigger's name.
--
-- Concurrency: see enqueue_tasks and create_dag.
-- Lock order:  tasks, lanes, dags.
-- Raises:      what enqueue_tasks and create_dag raise.
create or replace function treadle.make_from(
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
  v_origin jsonb := jsonb_build_object('source', 'trigger', 'source_job', p_trigger.name);
  v_author jsonb := jsonb_build_object('created_by', p_trigger.created_by);
  v_dag    jsonb := treadle.without_nulls(p_filled -> 'dag');
begin
  if p_filled ? 'task' then
    select made.id
    into task_id
    from treadle.enqueue_tasks(
      jsonb_build_array(v_author || treadle.without_nulls(p_filled -> 'task') || v_origin)
    ) as made;
    return;
  end if;

  select made.dag_id
  into dag_id
  from treadle.create_dag(
    v_author || v_dag || jsonb_build_object(
      'tasks',
      (
        select jsonb_agg(
          treadle.without_nulls(node.task) || v_origin order by node.at
        )
        from jsonb_array_elements(v_dag -> 'tasks') with ordinality as node (task, at)
      )
    )
  ) as made;
end;
$$;
