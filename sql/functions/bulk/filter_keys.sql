-- filter_keys: what a filter of tasks can name.
--
-- Concurrency: none.
-- Lock order:  none.
-- Raises:      nothing.

create or replace function treadle.filter_keys()
returns text[]
language sql
immutable
parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'queue', 'type', 'status', 'tag', 'dag_id', 'project_id', 'agent', 'failure_class', 'reason',
    'created_before', 'created_after', 'created_by', 'source'
  ]
$$;

comment on function treadle.filter_keys() is
'Internal: the keys of a filter of tasks.';

revoke all on function treadle.filter_keys() from public;
