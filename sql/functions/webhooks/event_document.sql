-- event_document: an event as it is sent and as filters see it.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

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

comment on function treadle.event_document(treadle.events) is
'Internal: the json document of an event: id, type, timestamp, what it is about, data.';

revoke all on function treadle.event_document(treadle.events) from public;
