-- event_facts: an event as json, with the task and the DAG that it is about.
--
-- It is what filters look at and what templates take their values from.
--
-- Concurrency: reads the task as it is now.

create or replace function treadle.event_facts(p_event treadle.events)
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
          'project_id', tasks.project_id, 'source', tasks.source, 'source_job', tasks.source_job,
          'external_ref', tasks.external_ref, 'cost_usd', tasks.cost_usd, 'dag_id', tasks.dag_id
        )
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

-- event_document: an event as it is sent and as filters see it.
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
