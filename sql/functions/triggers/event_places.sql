-- event_places: what filters and templates of triggers can name of an event; see event_facts.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.event_places()
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'id', 'kind', 'at', 'key', 'actor', 'data', 'task_id', 'type', 'queue', 'name', 'title',
    'tags', 'status', 'spec', 'output', 'failure_class', 'failure_reason', 'parent_id',
    'project_id', 'source', 'source_job', 'external_ref', 'cost_usd', 'dag_id', 'dag'
  ]
$$;

comment on function treadle.event_places() is
'Internal: the keys of the facts of an event.';

revoke all on function treadle.event_places() from public;
