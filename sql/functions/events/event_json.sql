-- event_json: return an event as JSON, with its task and its DAG.
--
-- Filters of triggers and webhooks read it, and templates take their values from it.
--
-- Concurrency: reads the current row of the task.

create or replace function treadle.event_json(p_event treadle.events)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
  select
    coalesce(
      (
        select jsonb_build_object(
          'type', tasks.type, 'queue', tasks.queue, 'name', tasks.name, 'title', tasks.title,
          'tags', coalesce(tasks.tags, '{}'), 'status', tasks.status, 'spec', tasks.spec,
          'output', tasks.output, 'failure_class', tasks.failure_class,
          'failure_reason', tasks.failure_reason, 'parent_id', tasks.parent_id,
          'project_id', tasks.project_id, 'cost_usd', tasks.cost_usd, 'dag_id', tasks.dag_id
        )
        || to_jsonb(jsonb_populate_record(treadle.options_of(tasks), '{}')) - 'task_id'
        from treadle.tasks
        where tasks.id = p_event.task_id
      ),
      '{}'
    )
    || coalesce(
      (
        select jsonb_build_object(
          'dag', jsonb_build_object(
            'id', dags.id, 'name', dags.name, 'status', dags.status, 'meta', dags.meta
          )
        )
        from treadle.dags
        where
          dags.id = coalesce(
            p_event.dag_id,
            (select tasks.dag_id from treadle.tasks where tasks.id = p_event.task_id)
          )
      ),
      '{}'
    )
    || jsonb_build_object(
      'id', p_event.id, 'kind', p_event.kind, 'at', p_event.at, 'actor', p_event.actor,
      'task_id', p_event.task_id, 'data', p_event.data
    )
    || jsonb_strip_nulls(
      jsonb_build_object(
        'key', p_event.key, 'queue', p_event.queue, 'dag_id', p_event.dag_id
      )
    )
$$;

-- event_fields: return the fields of an event that filters and templates can use; see event_json.
create or replace function treadle.event_fields()
returns text[]
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'id', 'kind', 'at', 'key', 'actor', 'data', 'task_id', 'type', 'queue', 'name', 'title',
    'tags', 'status', 'spec', 'output', 'failure_class', 'failure_reason', 'parent_id',
    'project_id', 'cost_usd', 'dag_id', 'dag'
  ] || array(
    select options.name
    from jsonb_object_keys(
      to_jsonb(jsonb_populate_record(null::treadle.task_options, '{}')) - 'task_id'
    ) as options (name)
  )
$$;

-- event_document: return an event as it is sent to webhooks and seen by filters.
create or replace function treadle.event_document(p_event treadle.events)
returns jsonb
language sql
stable
set search_path = pg_catalog, pg_temp
as $$
select
  jsonb_strip_nulls(
    jsonb_build_object(
      'id', (p_event).id::text,
      'type', (p_event).kind,
      'timestamp',
      to_char((p_event).at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
      'task_id', (p_event).task_id,
      'task_type', (select tasks.type from treadle.tasks where tasks.id = (p_event).task_id),
      'dag_id', (p_event).dag_id,
      'queue', (p_event).queue,
      'key', (p_event).key,
      'actor', (p_event).actor
    )
  )
  || jsonb_build_object('data', (p_event).data)
$$;
